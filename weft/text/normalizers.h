// Normalizers of tokenizer.json, and BERT's.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "weft/text/pipeline.h"

namespace weft {

struct BertNormalizerOptions {
  bool clean = true;          // drops controls; every white space becomes a space
  bool split_chinese = true;  // spaces around ideographs
  bool strip_accents = true;
  bool lower = true;
};
[[nodiscard]] std::unique_ptr<Normalizer> make_bert_normalizer(const BertNormalizerOptions& options);

/// SentencePiece's compiled rules: the longest prefix in a trie is replaced. `blob` is the trie's size, the
/// trie and the replacements, as a model file holds them.
[[nodiscard]] std::unique_ptr<Normalizer> make_charsmap(const std::string& blob);

/// "normalizer" of a tokenizer.json; null for null.
[[nodiscard]] std::unique_ptr<Normalizer> make_normalizer(const nlohmann::json& json);

}  // namespace weft
