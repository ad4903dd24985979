// weft preprocess --inspect: what a data set holds.
#include <algorithm>
#include <bit>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/cli/preprocess.h"
#include "weft/data/token_file.h"

namespace weft::cli {
namespace {

using data::TokenFile;

// Sequences by length, in powers of two: the key is the largest length of its class.
std::map<std::int64_t, std::int64_t> histogram(const TokenFile& file) {
  std::map<std::int64_t, std::int64_t> classes;
  for (std::int64_t i = 0; i < file.num_sequences(); ++i) {
    const auto length = static_cast<std::uint64_t>(file.length(i));
    ++classes[length == 0 ? 0 : static_cast<std::int64_t>((std::uint64_t{1} << std::bit_width(length)) - 1)];
  }
  return classes;
}

std::vector<std::int32_t> document(const TokenFile& file, std::int64_t d) {
  std::vector<std::int32_t> ids;
  const auto [begin, end] = file.document(d);
  for (std::int64_t s = begin; s < end; ++s) {
    const std::size_t before = ids.size();
    ids.resize(before + static_cast<std::size_t>(file.length(s)));
    file.read(s, 0, std::span(ids).subspan(before));
  }
  return ids;
}

void print(const TokenFile& file, const std::map<std::int64_t, std::int64_t>& classes) {
  std::cout << text(file.prefix(), "\n  documents  ", file.num_documents(), "\n  sequences  ",
                    file.num_sequences(), "\n  tokens     ", file.num_tokens(), " of type ",
                    name(file.type()), "\n  lengths\n");
  std::int64_t most = 1;
  for (const auto& [largest, count] : classes) most = std::max(most, count);
  for (const auto& [largest, count] : classes) {
    const std::string range = largest == 0 ? "0" : text((largest + 1) / 2, " to ", largest);
    const std::string number = text(count);
    std::cout << text("    ", range, std::string(range.size() < 24 ? 24 - range.size() : 1, ' '), number,
                      std::string(number.size() < 12 ? 12 - number.size() : 1, ' '),
                      std::string(static_cast<std::size_t>(40 * count / most), '#'), '\n');
  }
}

}  // namespace

void inspect_data(const PreprocessFlags& flags) {
  const TokenFile file(flags.inspect,
                       {.modes = flags.multimodal ? data::Modes::wanted : data::Modes::ignored});
  file.verify();
  const auto tokenizer = tokenizer_of(flags);
  const auto classes = histogram(file);
  const std::int64_t shown = std::min(flags.documents, file.num_documents());
  if (flags.json) {
    nlohmann::ordered_json object = {{"prefix", file.prefix()},
                                     {"documents", file.num_documents()},
                                     {"sequences", file.num_sequences()},
                                     {"tokens", file.num_tokens()},
                                     {"type", std::string(name(file.type()))}};
    for (const auto& [largest, count] : classes) object["lengths_up_to"][std::to_string(largest)] = count;
    object["first"] = nlohmann::ordered_json::array();
    for (std::int64_t d = 0; d < shown; ++d) {
      const auto ids = document(file, d);
      nlohmann::ordered_json entry = {{"tokens", ids}};
      if (tokenizer) entry["text"] = tokenizer->decode(ids);
      object["first"].push_back(std::move(entry));
    }
    std::cout << object.dump() << '\n';
    return;
  }
  print(file, classes);
  for (std::int64_t d = 0; d < shown; ++d) {
    const auto ids = document(file, d);
    std::cout << "  document " << d << ", " << ids.size() << " tokens\n    ";
    std::cout << (tokenizer ? tokenizer->decode(ids) : join(ids, " ")) << '\n';
  }
}

}  // namespace weft::cli
