// GPT-2's vocab.json and merges.txt.
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/text/byte_level.h"
#include "weft/text/bytes.h"
#include "weft/text/json.h"
#include "weft/text/unicode.h"

namespace weft {

std::vector<std::pair<std::string, std::string>> read_merges(std::string_view merges_txt) {
  std::vector<std::pair<std::string, std::string>> merges;
  std::size_t number = 0;
  for (std::string_view line : split(merges_txt, '\n')) {
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos || space == 0 ||
        line.find(' ', space + 1) != std::string_view::npos || space + 1 == line.size()) {
      fail(Kind::data, "merges.txt: line ", number, " is '", line,
           "', expected two tokens and one space between");
    }
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return merges;
}

BytePairParts byte_pair_parts(const Vocabulary& vocabulary,
                              const std::vector<std::pair<std::string, std::string>>& merges) {
  BytePairParts parts;
  for (const std::string& token : vocabulary.tokens()) {
    parts.tokens.push_back(byte_alphabet.bytes(token).value_or(""));
  }
  for (const auto& merge : merges) {
    const auto rank = static_cast<std::int32_t>(parts.merges.size());
    const auto id = [&](const std::string& token) {
      if (const auto found = vocabulary.id(token)) return *found;
      fail(Kind::data, "merges: merge ", rank, " ('", merge.first, "' '", merge.second, "') needs '", token,
           "', which the vocabulary does not hold");
    };
    parts.merges.push_back({id(merge.first), id(merge.second), id(merge.first + merge.second), rank});
  }
  return parts;
}

std::unique_ptr<Tokenizer> make_gpt2(std::string_view vocab_json, std::string_view merges_txt,
                                     const std::vector<std::string>& special) {
  constexpr const char* end_of_text = "<|endoftext|>";
  if (!unicode::valid(merges_txt)) fail(Kind::data, "merges.txt: is not UTF-8");
  const nlohmann::json json = parse_json(vocab_json, "vocab.json");
  PipelineParts parts;
  read_vocabulary(json, "vocab.json", parts.vocabulary);
  ByteLevelParts words{.splitter = make_splitter(gpt2_pattern(), Dialect::rust),
                       .pairs = byte_pair_parts(parts.vocabulary, read_merges(merges_txt))};
  if (!parts.vocabulary.id(end_of_text)) {
    parts.vocabulary.set(end_of_text, parts.vocabulary.size(), "vocab.json");
  }
  parts.encoder = make_byte_level(std::move(words));
  parts.decoder = make_byte_level_decoder();
  parts.added.push_back({.content = end_of_text, .id = *parts.vocabulary.id(end_of_text)});
  add_special(special, parts);
  for (const char* name : {"eod", "eos", "bos", "unk"}) parts.named[name] = end_of_text;
  return std::make_unique<Pipeline>(std::move(parts));
}

}  // namespace weft
