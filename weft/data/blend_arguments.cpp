// Reading which data sets to blend, from flags and files.
#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/format.h"
#include "weft/data/blend.h"
#include "weft/data/split.h"

namespace weft::data {
namespace {

std::optional<double> as_weight(const std::string& word) {
  const std::string trimmed(trim(word));
  char* end = nullptr;
  const double value = std::strtod(trimmed.c_str(), &end);
  const bool hexadecimal = trimmed.find_first_of("xX") != std::string::npos;  // no number to Python
  if (trimmed.empty() || *end != '\0' || hexadecimal) return std::nullopt;
  return value;
}

std::vector<std::string> words_of(std::string_view content) {
  std::vector<std::string> words;
  constexpr std::string_view space = " \t\r\n\v\f";
  for (std::size_t at = content.find_first_not_of(space); at != std::string_view::npos;) {
    const std::size_t end = std::min(content.find_first_of(space, at), content.size());
    words.emplace_back(content.substr(at, end - at));
    at = content.find_first_not_of(space, end);
  }
  return words;
}

void check_weights(const BlendArguments& blend, const std::string& flag) {
  constexpr double most = 1e100;  // far from where their sum is infinite
  for (std::size_t i = 0; i < blend.weights.size(); ++i) {
    if (blend.weights[i] > 0 && blend.weights[i] <= most) continue;
    fail(Kind::usage, flag, ": weight ", blend.weights[i], " of ", blend.prefixes[i],
         ", expected one above 0 and up to ", most);
  }
}

std::optional<BlendArguments> split_entry(const nlohmann::json& entry, const std::string& flag) {
  if (entry.is_null()) return std::nullopt;
  if (entry.is_string()) return parse_blend(words_of(entry.get<std::string>()), flag);
  std::vector<std::string> words;
  if (!entry.is_array()) fail(Kind::usage, flag, ": expected a list, a text or null");
  for (const auto& word : entry) words.push_back(word.is_string() ? word.get<std::string>() : word.dump());
  return parse_blend(words, flag);
}

}  // namespace

BlendArguments parse_blend(std::span<const std::string> words, const std::string& flag) {
  if (words.empty()) fail(Kind::usage, flag, ": no data sets given");
  BlendArguments blend;
  std::size_t weighted = 0;  // how many weights stand before the first word that is none
  while (2 * weighted + 1 < words.size() && as_weight(words[2 * weighted])) ++weighted;
  const bool pairs = words.size() % 2 == 0 && 2 * weighted == words.size();
  // Behind a word that is no weight there may be no other weight: "30 a b c" is four prefixes, "a b 30 c" is
  // a mistake.
  for (std::size_t i = 2 * weighted; words.size() % 2 == 0 && i < words.size(); i += 2) {
    if (!as_weight(words[i])) continue;
    fail(Kind::usage, flag, ": ", words[i], " is a weight, but ", words[2 * weighted],
         " stands where one is expected; give a weight before every prefix, or none");
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (pairs && i % 2 == 0) {
      blend.weights.push_back(*as_weight(words[i]));
    } else {
      blend.prefixes.emplace_back(trim(words[i]));
    }
  }
  check_weights(blend, flag);
  return blend;
}

BlendArguments read_blend_file(const std::string& path) {
  return parse_blend(words_of(read_file(path)), "{data.paths_file} " + path);
}

std::array<std::optional<BlendArguments>, 3> read_split_blend_file(const std::string& path) {
  const std::string flag = "{data.per_split_file} " + path;
  const auto object = nlohmann::json::parse(read_file(path), nullptr, false);
  if (!object.is_object()) fail(Kind::usage, flag, ": not a JSON object");
  std::array<std::optional<BlendArguments>, 3> blends;
  for (const Split split : splits) {
    const std::string key(name(split));
    if (!object.contains(key))
      fail(Kind::usage, flag, ": no ", key, "; train, valid and test are needed, null for no data");
    blends[static_cast<std::size_t>(split)] = split_entry(object.at(key), text(flag, " ", key));
  }
  return blends;
}

}  // namespace weft::data
