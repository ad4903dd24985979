// Tokenizers as Megatron-LM's releases name them: a class, a path, and the arguments in the order they are
// passed, each as Python's str().
#include "weft/data/tokenizer_identity.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "weft/base/error.h"

namespace weft::data {
namespace {

using Json = nlohmann::ordered_json;

std::string python(const std::optional<std::string>& value) { return value.value_or("None"); }
std::string python(bool value) { return value ? "True" : "False"; }
std::string python(const std::vector<std::string>& values) {
  std::string out = "[";
  for (const std::string& value : values) out += (out.size() > 1 ? ", '" : "'") + value + "'";
  return out + "]";
}
std::string python_or_none(const std::vector<std::string>& values) {
  return values.empty() ? "None" : python(values);
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

void add_hugging_face(Json& object, const TokenizerFlags& flags, Upstream upstream) {
  const bool gigatoken = upstream == Upstream::core_0_18;
  object["use_fast"] = python(flags.use_fast);
  object["trust_remote_code"] = python(flags.trust_remote_code);
  object["include_special_tokens"] = python(flags.include_special_tokens);
  if (gigatoken) object["use_gigatoken"] = python(false);
}

void add_megatron(Json& object, const TokenizerFlags& flags, Upstream upstream) {
  std::vector<std::string> specials = flags.special_tokens;
  if (flags.type == "BertWordPieceCase") {
    specials.clear();
    for (int i = 0; i < 100; ++i) specials.push_back(text("<extra_id_", i, ">"));
  }
  object["tokenizer_path"] = flags.type;
  object["additional_special_tokens"] = python(specials);
  object["vocab_file"] = python(flags.vocab_file);
  object["merges_file"] = python(flags.merge_file);
  add_hugging_face(object, flags, upstream);
}

void add_sentencepiece(Json& object, const TokenizerFlags& flags, Upstream upstream) {
  if (upstream == Upstream::core_0_18) {
    object["chat_template"] = "None";
    object["ignore_extra_whitespaces"] = python(flags.ignore_extra_whitespaces);
  }
  object["legacy"] = python(flags.sentencepiece_legacy);
  object["special_tokens"] = python_or_none(flags.special_tokens);
}

void add_tiktoken(Json& object, const TokenizerFlags& flags, Upstream upstream) {
  if (upstream == Upstream::core_0_18) object["chat_template"] = "None";
  if (flags.tiktoken_pattern) object["pattern"] = *flags.tiktoken_pattern;
  if (flags.vocab_size) object["vocab_size"] = text(*flags.vocab_size);
  object["num_special_tokens"] = text(flags.tiktoken_num_special_tokens);
  object["special_tokens"] = python_or_none(flags.special_tokens);
}

Json path_of(const std::optional<std::string>& path) { return path ? Json(*path) : Json(nullptr); }

std::string current(const TokenizerFlags& flags, Upstream upstream) {
  Json object;
  object["class"] = upstream == Upstream::core_0_18
                        ? "megatron.core.tokenizers.text.text_tokenizer.MegatronTokenizerText"
                        : "megatron.core.tokenizers.text.models.default_tokenizer.DefaultTokenizerText";
  object["tokenizer_path"] = path_of(flags.model);
  if (is_one_of(flags.type, {"BertWordPieceLowerCase", "BertWordPieceCase", "GPT2BPETokenizer"})) {
    add_megatron(object, flags, upstream);
  } else if (is_one_of(flags.type,
                       {"SentencePieceTokenizer", "GPTSentencePieceTokenizer", "Llama2Tokenizer"})) {
    add_sentencepiece(object, flags, upstream);
  } else if (flags.type == "TikTokenizer") {
    add_tiktoken(object, flags, upstream);
  } else if (flags.type == "HuggingFaceTokenizer") {
    if (upstream == Upstream::core_0_18) object["chat_template"] = "None";
    object["vocab_file"] = python(flags.vocab_file);
    object["merges_file"] = python(flags.merge_file);
    object["additional_special_tokens"] = python(flags.special_tokens);
    add_hugging_face(object, flags, upstream);
  } else {
    object["tokenizer_path"] = nullptr;
    if (flags.vocab_size) object["vocab_size"] = text(*flags.vocab_size);
    if (flags.null_eod) object["eod_id"] = text(*flags.null_eod);
    if (flags.null_pad) object["pad_id"] = text(*flags.null_pad);
  }
  return object.dump();
}

// Up to 0.14: the class's bare name, a list of paths, and options by name.
std::string legacy(const TokenizerFlags& flags) {
  Json object;
  const auto identify = [&](const char* name, std::initializer_list<std::optional<std::string>> paths) {
    object["class"] = name;
    object["tokenizer_path"] = Json::array();
    for (const auto& path : paths) object["tokenizer_path"].push_back(path_of(path));
  };
  const std::string extra_ids = text(flags.vocab_extra_ids);
  if (flags.type == "GPT2BPETokenizer") {
    identify("_GPT2BPETokenizer", {flags.vocab_file, flags.merge_file});
  } else if (is_one_of(flags.type, {"BertWordPieceLowerCase", "BertWordPieceCase"})) {
    identify("_BertWordPieceTokenizer", {flags.vocab_file});
    object["lower_case"] = python(flags.type == "BertWordPieceLowerCase");
    object["vocab_extra_ids"] = extra_ids;
  } else if (flags.type == "SentencePieceTokenizer") {
    identify("_SentencePieceTokenizer", {flags.model});
    object["vocab_extra_ids"] = extra_ids;
  } else if (flags.type == "GPTSentencePieceTokenizer") {
    identify("_GPTSentencePieceTokenizer", {flags.model});
    object["vocab_extra_ids"] = "0";
  } else if (flags.type == "Llama2Tokenizer") {
    identify("_Llama2Tokenizer", {flags.model});
    object["vocab_extra_ids"] = "0";
  } else if (flags.type == "HuggingFaceTokenizer") {
    identify("_HuggingFaceTokenizer", {flags.model});
  } else if (flags.type == "NullTokenizer") {
    identify("_NullTokenizer", {std::nullopt});
    if (flags.vocab_size) object["vocab_size"] = text(*flags.vocab_size);
  } else {
    fail(Kind::usage, "{data.cache_version} 0.14: no name is known for ", flags.type,
         "; give the tokenizer's identity with {data.cache_tokenizer}");
  }
  return object.dump();
}

}  // namespace

Upstream upstream_of(std::string_view version) {
  constexpr std::string_view lead = "0.";
  int minor = -1;
  if (version.starts_with(lead))
    std::from_chars(version.data() + lead.size(), version.data() + version.size(), minor);
  if (minor < 5)
    fail(Kind::usage, "{data.cache_version} ", version,
         ": expected a release of Megatron core such as 0.18, 0.16 or 0.14");
  return minor >= 18 ? Upstream::core_0_18 : minor >= 15 ? Upstream::core_0_16 : Upstream::core_0_14;
}

std::string tokenizer_identity(const TokenizerFlags& flags, Upstream upstream) {
  return upstream == Upstream::core_0_14 ? legacy(flags) : current(flags, upstream);
}

}  // namespace weft::data
