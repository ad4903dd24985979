// llama.cpp knows ways of splitting texts by the names of the first models that had them.
#include <array>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/exchange/gguf/vocabulary.h"

namespace weft::exchange::gguf {
namespace {

using nlohmann::json;

/// Steps are joined by new lines: "bytes" and "words" are byte levels, the latter with GPT-2's expression;
/// "digits" single digits; all others expressions.
struct Splits {
  std::string_view pre, steps;
  bool ignores_merges = false;
};
constexpr std::array<Splits, 10> known{{
    {"gpt-2", "words"},
    {"llama-bpe",
     R"x((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)x"
     "\nbytes",
     true},
    {"smaug-bpe",
     R"x((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)x"
     "\nbytes"},
    {"qwen2",
     R"x((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)x"
     "\nbytes"},
    {"qwen35",
     R"x((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)x"
     "\nbytes"},
    {"tekken",
     R"x([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)x"
     "\nbytes",
     true},
    {"gpt-4o",
     R"x([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)x"
     "\nbytes"},
    {"starcoder", "digits\nwords"},
    {"smollm", "digits\nwords"},
    {"deepseek-v3",
     R"x(\p{N}{1,3})x"
     "\n"
     R"x([一-龥぀-ゟ゠-ヿ]+)x"
     "\n"
     R"x([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)x"
     "\nbytes"},
}};

/// Empty for a step that llama.cpp has nowhere.
std::string step_of(const json& step) {
  const std::string type = step.value("type", "");
  if (type == "ByteLevel") {
    if (step.value("add_prefix_space", true)) return "";
    return step.value("use_regex", true) ? "words" : "bytes";
  }
  if (type == "Digits") return step.value("individual_digits", false) ? "digits" : "";
  if (type != "Split" || step.value("behavior", "") != "Isolated" || step.value("invert", false)) return "";
  const auto pattern = step.find("pattern");
  return pattern != step.end() && pattern->is_object() ? pattern->value("Regex", "") : "";
}

json made_step(const std::string& step) {
  if (step == "digits") return {{"type", "Digits"}, {"individual_digits", true}};
  if (step == "words" || step == "bytes")
    return {{"type", "ByteLevel"},
            {"add_prefix_space", false},
            {"trim_offsets", true},
            {"use_regex", step == "words"}};
  return {{"type", "Split"}, {"pattern", {{"Regex", step}}}, {"behavior", "Isolated"}, {"invert", false}};
}

}  // namespace

std::string name_of_splits(const json& tokenizer, const std::string& who) {
  const json pre = tokenizer.value("pre_tokenizer", json());
  json steps = json::array({pre});
  if (pre.is_object() && pre.value("type", "") == "Sequence")
    steps = pre.value("pretokenizers", json::array());
  std::vector<std::string> found;
  for (const json& step : steps) {
    const std::string one = step.is_object() ? step_of(step) : "";
    if (one.empty())
      fail(Kind::usage, who, ": splits texts by ", step.dump().substr(0, 120),
           ", for which llama.cpp has no name that weft knows; give another tokenizer, or "
           "let "
           "llama.cpp's own converter make the file of Hugging Face's form");
    found.push_back(one);
  }
  if (found.empty())
    fail(Kind::usage, who, ": splits texts by no step, for which llama.cpp has no name that weft knows");
  const bool ignores = tokenizer.at("model").value("ignore_merges", false);
  for (const Splits& one : known)
    if (one.steps == join(found, "\n") && one.ignores_merges == ignores) return std::string(one.pre);
  fail(Kind::usage, who, ": splits texts by ", found.front().substr(0, 120),
       ignores ? " and ignores merges" : "",
       ", for which llama.cpp has no name that weft knows; give another tokenizer, or let "
       "llama.cpp's own converter make the file of Hugging Face's form");
}

json splits_of_name(const std::string& pre) {
  for (const Splits& one : known) {
    if (one.pre != pre && !(pre == "olmo" && one.pre == "gpt-2")) continue;
    json steps = json::array();
    for (const std::string_view step : split(one.steps, '\n')) steps.push_back(made_step(std::string(step)));
    if (steps.size() == 1) return steps.front();
    return {{"type", "Sequence"}, {"pretokenizers", steps}};
  }
  return {};
}

bool ignores_merges(const std::string& pre) {
  for (const Splits& one : known)
    if (one.pre == pre) return one.ignores_merges;
  return false;
}

}  // namespace weft::exchange::gguf
