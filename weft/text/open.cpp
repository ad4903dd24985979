#include "weft/text/open.h"

#include <array>
#include <filesystem>

#include "weft/base/error.h"
#include "weft/base/fields.h"
#include "weft/base/file.h"
#include "weft/base/nearest.h"
#include "weft/base/number.h"
#include "weft/text/byte_level.h"
#include "weft/text/huggingface.h"
#include "weft/text/plain.h"
#include "weft/text/sentencepiece.h"

namespace weft {

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 12> types{
    "GPT2BPETokenizer",       "HuggingFaceTokenizer",      "HFTokenizer",     "TikTokenizer",
    "SentencePieceTokenizer", "GPTSentencePieceTokenizer", "Llama2Tokenizer", "BertWordPieceLowerCase",
    "BertWordPieceCase",      "ByteLevelTokenizer",        "NullTokenizer",   "SFTTokenizer"};

const std::string& needed(const std::string& value, const char* flag, const std::string& type) {
  if (value.empty()) fail(Kind::usage, type, " needs ", flag);
  return value;
}

std::string type_of(const TokenizerOptions& o) {
  if (!o.tokenizer_type.empty()) return o.tokenizer_type;
  if (!o.merge_file.empty()) return "GPT2BPETokenizer";
  const fs::path model(o.tokenizer_model);
  if (fs::is_directory(model) || model.filename() == "tokenizer.json") return "HuggingFaceTokenizer";
  if (model.extension() == ".model") return "SentencePieceTokenizer";
  if (model.extension() == ".tiktoken") return "TikTokenizer";
  if (model.extension() == ".json") {
    const std::string head = read_file(model);
    const auto first = head.find_first_not_of(" \t\r\n");
    return first != std::string::npos && head[first] == '[' ? "TikTokenizer" : "HuggingFaceTokenizer";
  }
  fail(Kind::usage,
       "tokenizer: nothing says which one; give {tokenizer_type}, or {tokenizer_model} with a file that "
       "ends in .json, .model or .tiktoken");
}

bool is_sentencepiece(std::string_view type) {
  return type == "SentencePieceTokenizer" || type == "GPTSentencePieceTokenizer" || type == "Llama2Tokenizer";
}
bool is_huggingface(std::string_view type) {
  return type == "HuggingFaceTokenizer" || type == "HFTokenizer" || type == "SFTTokenizer";
}
bool is_bert(std::string_view type) { return type.starts_with("BertWordPiece"); }

// Settings that change no id where the type does not read them.
struct Setting {
  std::string_view flag;
  bool (*given)(const TokenizerOptions&);
  bool (*read_by)(std::string_view type);
};
constexpr auto tiktoken_reads = [](std::string_view type) { return type == "TikTokenizer"; };
constexpr auto null_reads = [](std::string_view type) { return type == "NullTokenizer"; };
constexpr std::array settings{
    Setting{"{vocab_file}", [](const TokenizerOptions& o) { return !o.vocab_file.empty(); },
            [](std::string_view type) { return type == "GPT2BPETokenizer" || is_bert(type); }},
    Setting{"{merge_file}", [](const TokenizerOptions& o) { return !o.merge_file.empty(); },
            [](std::string_view type) { return type == "GPT2BPETokenizer"; }},
    Setting{"{tokenizer_model}", [](const TokenizerOptions& o) { return !o.tokenizer_model.empty(); },
            [](std::string_view type) {
              return type == "TikTokenizer" || is_huggingface(type) || is_sentencepiece(type);
            }},
    Setting{"{tiktoken_pattern}", [](const TokenizerOptions& o) { return o.tiktoken_pattern != "v2"; },
            tiktoken_reads},
    Setting{"{tiktoken_num_special_tokens}",
            [](const TokenizerOptions& o) { return o.tiktoken_num_special_tokens != 1000; }, tiktoken_reads},
    Setting{"{tokenizer_hf_no_include_special_tokens}",
            [](const TokenizerOptions& o) { return o.tokenizer_hf_no_include_special_tokens; },
            is_huggingface},
    Setting{"{tokenizer_sentencepiece_legacy}",
            [](const TokenizerOptions& o) { return o.tokenizer_sentencepiece_legacy; }, is_sentencepiece},
    Setting{"{tokenizer_sentencepiece_ignore_extra_whitespaces}",
            [](const TokenizerOptions& o) { return !o.tokenizer_sentencepiece_ignore_extra_whitespaces; },
            is_sentencepiece},
    Setting{"{null_tokenizer_eod_id}",
            [](const TokenizerOptions& o) { return o.null_tokenizer_eod_id.has_value(); }, null_reads},
    Setting{"{null_tokenizer_pad_id}",
            [](const TokenizerOptions& o) { return o.null_tokenizer_pad_id.has_value(); }, null_reads},
};

// Tokens that were asked for and would not be there change ids: no mere notice.
void refuse_further_tokens(const TokenizerOptions& o, const std::string& type) {
  if (type == "NullTokenizer" && !o.tokenizer_special_tokens.empty())
    fail(Kind::usage, type, " takes no {tokenizer_special_tokens}: its tokens are numbers");
  if (type == "NullTokenizer" && o.vocab_extra_ids > 0)
    fail(Kind::usage, type,
         " takes no {vocab_extra_ids}: its tokens are numbers; give a larger {vocab_size}");
  if (type == "TikTokenizer" && o.vocab_extra_ids > 0)
    fail(Kind::usage, type,
         " takes no {vocab_extra_ids}; give the sentinels with {tokenizer_special_tokens}");
  if (o.legacy_tokenizer && !is_bert(type))
    fail(Kind::usage, "{legacy_tokenizer}: weft has the old form of BERT's vocabularies only, not of ", type,
         "; leave it out");
  if (o.vocab_extra_ids < 0)
    fail(Kind::usage, "{vocab_extra_ids} ", o.vocab_extra_ids, ": expected 0 or more");
}

// Sentinels come behind the special tokens given.
std::vector<std::string> special_of(const TokenizerOptions& o) {
  std::vector<std::string> special = o.tokenizer_special_tokens;
  for (std::int64_t k = 0; k < o.vocab_extra_ids; ++k) special.push_back(text("<extra_id_", k, ">"));
  return special;
}

std::unique_ptr<Tokenizer> open_huggingface(const TokenizerOptions& o) {
  fs::path path(needed(o.tokenizer_model, "{tokenizer_model}", "HuggingFaceTokenizer"));
  if (fs::is_directory(path)) path /= "tokenizer.json";
  const auto beside = [&](const char* name) {
    const fs::path file = path.parent_path() / name;
    return fs::exists(file) ? read_file(file) : std::string();
  };
  return make_huggingface(
      {.tokenizer = read_file(path),
       .config = beside("tokenizer_config.json"),
       .special = beside("special_tokens_map.json"),
       .added = beside("added_tokens.json")},
      {.include_special = !o.tokenizer_hf_no_include_special_tokens, .special = special_of(o)});
}

// Sentinels that are asked for come as the only Megatron that read the flag had them. Else today's gives the
// cased vocabulary T5's hundred, between [CLS] and [SEP].
std::unique_ptr<Tokenizer> open_bert(const TokenizerOptions& o, const std::string& type) {
  const bool old = o.legacy_tokenizer || o.vocab_extra_ids > 0;
  BertOptions options{.lower = type == "BertWordPieceLowerCase", .bounds = old, .special = special_of(o)};
  if (!options.lower && type != "BertWordPieceCase")
    fail(Kind::usage, "tokenizer: there is no type '", type, "'", did_you_mean(type, types));
  if (!options.lower && !old) {
    for (int k = 0; k < 100; ++k) options.special.push_back(text("<extra_id_", k, ">"));
  }
  return make_bert(read_file(needed(o.vocab_file, "{vocab_file}", type)), options);
}

std::unique_ptr<Tokenizer> open_tiktoken(const TokenizerOptions& o) {
  const std::string& path = needed(o.tokenizer_model, "{tokenizer_model}", "TikTokenizer");
  const TiktokenOptions options{.pattern = o.tiktoken_pattern,
                                .vocabulary = o.vocab_size.value_or(131072),
                                .num_special = o.tiktoken_num_special_tokens,
                                .special = o.tokenizer_special_tokens};
  const std::string content = read_file(path);
  return fs::path(path).extension() == ".json" ? make_tiktoken_json(content, options)
                                               : make_tiktoken_ranks(content, options);
}

std::unique_ptr<Tokenizer> open_null(const TokenizerOptions& o) {
  if (!o.vocab_size) fail(Kind::usage, "NullTokenizer needs {vocab_size}");
  NullOptions options{.vocabulary = narrow<std::int32_t>(*o.vocab_size, Kind::usage), .eod = {}, .pad = {}};
  if (o.null_tokenizer_eod_id) options.eod = narrow<std::int32_t>(*o.null_tokenizer_eod_id, Kind::usage);
  if (o.null_tokenizer_pad_id) options.pad = narrow<std::int32_t>(*o.null_tokenizer_pad_id, Kind::usage);
  return make_null_tokenizer(options);
}

}  // namespace

std::unique_ptr<Tokenizer> open_tokenizer(const TokenizerOptions& o) {
  const std::string type = type_of(o);
  refuse_further_tokens(o, type);
  if (type == "NullTokenizer") return open_null(o);
  if (type == "TikTokenizer") return open_tiktoken(o);
  if (type == "ByteLevelTokenizer") {
    return make_byte_tokenizer({.vocabulary = narrow<std::int32_t>(o.vocab_size.value_or(512), Kind::usage),
                                .special = special_of(o)});
  }
  if (type == "GPT2BPETokenizer") {
    const std::string vocab = read_file(needed(o.vocab_file, "{vocab_file}", type));
    return make_gpt2(vocab, read_file(needed(o.merge_file, "{merge_file}", type)), special_of(o));
  }
  if (is_huggingface(type)) return open_huggingface(o);
  if (is_bert(type)) return open_bert(o, type);
  if (is_sentencepiece(type)) {
    return make_sentencepiece(read_file(needed(o.tokenizer_model, "{tokenizer_model}", type)),
                              {.legacy = o.tokenizer_sentencepiece_legacy,
                               .ignore_extra_whitespaces = o.tokenizer_sentencepiece_ignore_extra_whitespaces,
                               .special = special_of(o)});
  }
  if (type == "MultimodalTokenizer" || type == "NullMultimodalTokenizer") {
    fail(Kind::usage, "tokenizer: weft has no ", type);
  }
  fail(Kind::usage, "tokenizer: there is no type '", type, "'", did_you_mean(type, types));
}

std::vector<std::string> unread_options(const TokenizerOptions& o) {
  const std::string type = type_of(o);
  std::vector<std::string> sentences;
  for (const Setting& setting : settings)
    if (setting.given(o) && !setting.read_by(type))
      sentences.push_back(text("no effect here: ", setting.flag, " (", type, " does not read it)"));
  return sentences;
}

TokenizerOptions tokenizer_named(std::string_view name) {
  const auto colon = name.find(':');
  const std::string kind(name.substr(0, colon));
  const std::string rest(colon == std::string_view::npos ? "" : name.substr(colon + 1));
  TokenizerOptions o;
  if (kind == "byte") {
    o.tokenizer_type = "ByteLevelTokenizer";
  } else if (kind == "null") {
    o.tokenizer_type = "NullTokenizer";
    o.vocab_size = std::int64_t{};
    read_word(rest, *o.vocab_size);
  } else if (kind == "gpt2") {
    o.tokenizer_type = "GPT2BPETokenizer";
    const auto comma = rest.find(',');
    if (comma == std::string::npos)
      fail(Kind::usage, "tokenizer: '", name, "', expected gpt2:vocab.json,merges.txt");
    o.vocab_file = rest.substr(0, comma);
    o.merge_file = rest.substr(comma + 1);
  } else if (kind == "bert" || kind == "bert-cased") {
    o.tokenizer_type = kind == "bert" ? "BertWordPieceLowerCase" : "BertWordPieceCase";
    o.vocab_file = rest;
  } else if (kind == "hf" || kind == "tiktoken" || kind == "spm") {
    o.tokenizer_type = kind == "hf"    ? "HuggingFaceTokenizer"
                       : kind == "spm" ? "SentencePieceTokenizer"
                                       : "TikTokenizer";
    o.tokenizer_model = rest;
  } else {
    o.tokenizer_model = name;
  }
  return o;
}

}  // namespace weft
