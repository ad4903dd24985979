// Opening a tokenizer by Megatron's names, or by what its files are.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/legal.h"
#include "weft/text/tokenizer.h"

namespace weft {

/// Special tokens that a setting asks for by their number: each is a string, and a model has a row for it.
inline constexpr Legal special_token_count = legal::from_to(0, 1e6);

/// Megatron's flags, by their names.
struct TokenizerOptions {
  std::string tokenizer_type;  // empty: what the files are
  std::string vocab_file, merge_file, tokenizer_model;
  std::optional<std::int64_t> vocab_size;
  std::vector<std::string> tokenizer_special_tokens;
  std::int64_t vocab_extra_ids = 0;
  bool legacy_tokenizer = false;
  std::string tiktoken_pattern = "v2";
  std::int64_t tiktoken_num_special_tokens = 1000;
  bool tokenizer_hf_no_include_special_tokens = false;
  bool tokenizer_sentencepiece_legacy = false;
  bool tokenizer_sentencepiece_ignore_extra_whitespaces = true;
  std::optional<std::int64_t> null_tokenizer_eod_id, null_tokenizer_pad_id;
};

template <class Visitor>
void describe(Visitor& v, TokenizerOptions& o) {
  v("tokenizer_type", o.tokenizer_type,
    "GPT2BPETokenizer, HuggingFaceTokenizer, SFTTokenizer, TikTokenizer, SentencePieceTokenizer, "
    "GPTSentencePieceTokenizer, "
    "Llama2Tokenizer, BertWordPieceLowerCase, BertWordPieceCase, ByteLevelTokenizer or NullTokenizer; left "
    "out: what "
    "the files are");
  v("vocab_file", o.vocab_file, "vocab.json of GPT-2, vocab.txt of BERT");
  v("merge_file", o.merge_file, "merges.txt of GPT-2");
  v("tokenizer_model", o.tokenizer_model,
    "tokenizer.json or its directory, a SentencePiece model, a tiktoken file");
  v("vocab_size", o.vocab_size, "ids of a NullTokenizer, of a TikTokenizer (131072) or of bytes (512)",
    legal::size);
  v("tokenizer_special_tokens", o.tokenizer_special_tokens, "further special tokens");
  v("vocab_extra_ids", o.vocab_extra_ids, "sentinel tokens <extra_id_0> and so on behind the vocabulary",
    special_token_count);
  v("legacy_tokenizer", o.legacy_tokenizer,
    "BERT's vocabularies as Megatron's releases up to 0.14 had them: [BOS] and [EOS] behind the words");
  v("tiktoken_pattern", o.tiktoken_pattern, "v1, v2, r50k, cl100k, o200k or a regular expression");
  v("tiktoken_num_special_tokens", o.tiktoken_num_special_tokens, "special ids before the ranks",
    special_token_count);
  v("tokenizer_hf_no_include_special_tokens", o.tokenizer_hf_no_include_special_tokens,
    "leaves out what a tokenizer.json puts around every text");
  v("tokenizer_sentencepiece_legacy", o.tokenizer_sentencepiece_legacy,
    "adds special tokens behind a SentencePiece model's pieces");
  v("tokenizer_sentencepiece_ignore_extra_whitespaces", o.tokenizer_sentencepiece_ignore_extra_whitespaces,
    "lets a SentencePiece model drop repeated spaces, if it does");
  v("null_tokenizer_eod_id", o.null_tokenizer_eod_id, "instead of the last id", legal::size_or_none);
  v("null_tokenizer_pad_id", o.null_tokenizer_pad_id, "instead of -1", legal::from_to(-1, legal::size_limit));
}

/// Refuses tokens that the type cannot take in; other settings that it does not read are left to
/// unread_options().
[[nodiscard]] std::unique_ptr<Tokenizer> open_tokenizer(const TokenizerOptions& options);

/// A sentence for each setting that was given and that this type does not read, such as a pattern for
/// NullTokenizer: scripts carry them along, and whoever runs one should hear it.
[[nodiscard]] std::vector<std::string> unread_options(const TokenizerOptions& options);

/// "gpt2:vocab.json,merges.txt", "hf:tokenizer.json", "tiktoken:FILE", "spm:FILE", "bert:vocab.txt",
/// "bert-cased:vocab.txt", "byte", "null:SIZE", or just a file or directory that says what it is.
[[nodiscard]] TokenizerOptions tokenizer_named(std::string_view name);

}  // namespace weft
