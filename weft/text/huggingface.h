// Tokenizers of Hugging Face: tokenizer.json with the files beside it, and BERT's vocab.txt.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/text/tokenizer.h"

namespace weft {

struct HuggingFaceFiles {
  std::string tokenizer;  // tokenizer.json
  std::string config;     // tokenizer_config.json, or empty
  std::string special;    // special_tokens_map.json, or empty
  std::string added;      // added_tokens.json, or empty
};

struct HuggingFaceOptions {
  bool include_special = true;       // what the post-processor puts around a text
  std::vector<std::string> special;  // further special tokens, behind the vocabulary
};

/// Truncation and padding of the file are not applied, as transformers does not. Tokens that the files beside
/// name and tokenizer.json lacks come behind its vocabulary. Where no file names the end of text, the usual
/// names are looked for: "<|endoftext|>", "</s>" and so on.
[[nodiscard]] std::unique_ptr<Tokenizer> make_huggingface(const HuggingFaceFiles& files,
                                                          const HuggingFaceOptions& options);

struct BertOptions {
  bool lower = true;
  bool include_special = false;      // [CLS] … [SEP]; BERT's dataset puts its own
  bool bounds = false;               // [BOS] and [EOS] behind the words, unless they are among them
  std::vector<std::string> special;  // sentinels, behind these
};
/// A token a line, its id the number of the line.
[[nodiscard]] std::unique_ptr<Tokenizer> make_bert(std::string_view vocab_txt, const BertOptions& options);

}  // namespace weft
