// tiktoken's vocabularies: Megatron's JSON form and OpenAI's lines. A token's rank is its place in the order
// of merges.
#include <algorithm>
#include <charconv>
#include <set>

#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/text/base64.h"
#include "weft/text/byte_level.h"
#include "weft/text/bytes.h"
#include "weft/text/json.h"

namespace weft {

namespace {

std::string pattern_named(const std::string& name) {
  if (name == "v1") return std::string(megatron_v1_pattern());
  if (name == "v2") return std::string(megatron_v2_pattern());
  if (name == "r50k" || name == "p50k" || name == "gpt2") return std::string(gpt2_pattern());
  if (name == "cl100k") return std::string(cl100k_pattern());
  if (name == "o200k") return std::string(o200k_pattern());
  return name;
}

/// -1 where it is none.
std::int32_t rank_of(std::string_view text) {
  std::int32_t rank = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && rank < Vocabulary::most ? rank : -1;
}

struct Ranked {
  std::vector<std::string> tokens;  // bytes, by rank
  std::vector<std::int32_t> ids;
};

std::unique_ptr<Tokenizer> built(Ranked ranked, const std::vector<AddedToken>& special,
                                 std::map<std::string, std::string> named, const std::string& pattern) {
  constexpr const char* who = "tiktoken";
  PipelineParts parts;
  BytePairParts pairs{
      .tokens = {}, .merges = merges_of_ranks(ranked.tokens, ranked.ids), .whole_first = true};
  for (std::size_t k = 0; k < ranked.tokens.size(); ++k) {
    parts.vocabulary.set(byte_alphabet.written(ranked.tokens[k]), ranked.ids[k], who);
  }
  // The vocabulary is written in the byte alphabet, special tokens too, so that one decoder serves both.
  for (const AddedToken& token : special) {
    const std::string written = byte_alphabet.written(token.content);
    parts.vocabulary.set(written, token.id, who);
    named.try_emplace(token.content, written);
  }
  pairs.tokens.resize(static_cast<std::size_t>(parts.vocabulary.size()));
  for (std::size_t k = 0; k < ranked.tokens.size(); ++k) {
    pairs.tokens[static_cast<std::size_t>(ranked.ids[k])] = std::move(ranked.tokens[k]);
  }
  parts.added = special;
  parts.named = std::move(named);
  parts.decoder = make_byte_level_decoder();
  parts.encoder = make_byte_level({.splitter = make_splitter(pattern_named(pattern), Dialect::rust),
                                   .pairs = std::move(pairs),
                                   .keep_gaps = false});
  return std::make_unique<Pipeline>(std::move(parts));
}

std::vector<std::string> special_names(const TiktokenOptions& options) {
  const std::vector<std::string> usual{"<unk>", "<s>", "</s>", "<mask>", "<pad>", "<cls>", "<sep>"};
  std::vector<std::string> names = options.special.empty() ? usual : options.special;
  for (const std::string& name : usual) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      fail(Kind::usage, "tiktoken: the special tokens lack '", name, "'");
    }
  }
  const auto given = static_cast<std::int64_t>(names.size());
  if (given > options.num_special || options.num_special >= options.vocabulary) {
    fail(Kind::usage, "tiktoken: ", given, " special tokens, room for ", options.num_special,
         " of them and a vocabulary of ", options.vocabulary, ": expected each to hold the one before");
  }
  if (options.vocabulary > Vocabulary::most) {
    fail(Kind::usage, "tiktoken: a vocabulary of ", options.vocabulary, ", expected at most ",
         Vocabulary::most);
  }
  for (std::int64_t k = given; k < options.num_special; ++k) names.push_back(text("<SPECIAL_", k, ">"));
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (!seen.insert(name).second) fail(Kind::usage, "tiktoken: special token '", name, "' is given twice");
  }
  return names;
}

// The special tokens that OpenAI's own vocabularies have behind their ranks.
std::vector<AddedToken> openai_special(const std::string& pattern, std::int32_t ranks) {
  std::vector<AddedToken> tokens;
  const auto add = [&](const char* content, std::int32_t id) {
    tokens.push_back({.content = content, .id = id});
  };
  if (pattern == "cl100k" && ranks == 100256) {
    add("<|endoftext|>", 100257);
    add("<|fim_prefix|>", 100258);
    add("<|fim_middle|>", 100259);
    add("<|fim_suffix|>", 100260);
    add("<|endofprompt|>", 100276);
  } else if (pattern == "o200k" && ranks == 199998) {
    add("<|endoftext|>", 199999);
    add("<|endofprompt|>", 200018);
  } else if (ranks == 50280) {
    add("<|endoftext|>", 50256);  // p50k leaves this id free among its ranks
  } else {
    add("<|endoftext|>", ranks);
  }
  return tokens;
}

}  // namespace

std::unique_ptr<Tokenizer> make_tiktoken_json(std::string_view json, const TiktokenOptions& options) {
  constexpr const char* who = "tiktoken";
  const nlohmann::json list = parse_json(json, who);
  if (!list.is_array())
    fail(Kind::data, who, ": the file holds ", list.type_name(), ", expected a list of tokens");
  const std::vector<std::string> names = special_names(options);
  const std::int64_t wanted = options.vocabulary - options.num_special;
  if (static_cast<std::int64_t>(list.size()) < wanted) {
    fail(Kind::data, who, ": the file holds ", list.size(), " tokens, expected at least ", wanted,
         " for a vocabulary of ", options.vocabulary, " with ", options.num_special, " special ones");
  }
  Ranked ranked;
  std::set<std::string> seen;
  for (std::int64_t k = 0; k < wanted; ++k) {
    const auto& entry = list[static_cast<std::size_t>(k)];
    const std::string place = text(who, ": token ", k);
    if (!entry.is_object() || entry.value("rank", nlohmann::json()) != k) {
      fail(Kind::data, place, " does not say \"rank\": ", k);
    }
    std::string bytes = base64_decoded(text_field(entry, "token_bytes", place), place);
    if (bytes.empty() || (k < 256 && bytes != std::string(1, static_cast<char>(k)))) {
      fail(Kind::data, place, " is not ", k < 256 ? "that byte" : "anything");
    }
    if (!seen.insert(bytes).second) fail(Kind::data, place, " was there before");
    ranked.tokens.push_back(std::move(bytes));
    ranked.ids.push_back(static_cast<std::int32_t>(k + options.num_special));
  }
  std::vector<AddedToken> special;
  for (std::size_t k = 0; k < names.size(); ++k) {
    special.push_back({.content = names[k], .id = static_cast<std::int32_t>(k)});
  }
  const std::map<std::string, std::string> named{{"eod", "</s>"},  {"eos", "</s>"},    {"bos", "<s>"},
                                                 {"unk", "<unk>"}, {"mask", "<mask>"}, {"pad", "<pad>"},
                                                 {"cls", "<cls>"}, {"sep", "<sep>"}};
  return built(std::move(ranked), special, named, options.pattern);
}

std::unique_ptr<Tokenizer> make_tiktoken_ranks(std::string_view lines, const TiktokenOptions& options) {
  std::vector<std::pair<std::int32_t, std::string>> entries;
  std::set<std::int32_t> ranks;
  std::set<std::string> seen;
  std::size_t number = 0;
  for (const std::string_view line : split(lines, '\n')) {
    const std::string place = text("tiktoken: line ", ++number);
    if (trim(line).empty()) continue;
    const auto fields = split(trim(line), ' ');
    const std::int32_t rank = fields.size() == 2 ? rank_of(fields[1]) : -1;
    if (rank < 0) fail(Kind::data, place, " is not a token in base64 and its rank");
    std::string bytes = base64_decoded(fields[0], place);
    if (bytes.empty() || !seen.insert(bytes).second)
      fail(Kind::data, place, ": the token is empty or was there before");
    if (!ranks.insert(rank).second) fail(Kind::data, place, ": rank ", rank, " was there before");
    entries.emplace_back(rank, std::move(bytes));
  }
  if (entries.empty()) fail(Kind::data, "tiktoken: the file holds no token");
  std::sort(entries.begin(), entries.end());
  Ranked ranked;
  for (auto& [rank, bytes] : entries) {
    ranked.ids.push_back(rank);
    ranked.tokens.push_back(std::move(bytes));
  }
  std::vector<AddedToken> special =
      openai_special(options.pattern, static_cast<std::int32_t>(entries.size()));
  std::int32_t next = std::max(special.back().id, ranked.ids.back()) + 1;
  for (const std::string& name : options.special) special.push_back({.content = name, .id = next++});
  const std::map<std::string, std::string> named{
      {"eod", "<|endoftext|>"}, {"eos", "<|endoftext|>"}, {"bos", "<|endoftext|>"}};
  return built(std::move(ranked), special, named, options.pattern);
}

}  // namespace weft
