// Models of tokenizer.json: from a word to ids.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "weft/text/vocabulary.h"

namespace weft {

class WordModel {
 public:
  virtual ~WordModel() = default;
  virtual void encode(std::string_view word, std::vector<std::int32_t>& ids) const = 0;
};

/// Greedy longest match; a word that cannot be made, or is longer than `most` characters, is the unknown
/// token.
struct WordPieceParts {
  Vocabulary vocabulary;
  std::string unknown = "[UNK]", prefix = "##";
  std::size_t most = 100;
};
[[nodiscard]] std::unique_ptr<WordModel> make_word_piece(WordPieceParts parts);

/// The most probable cut into pieces, with their logarithms given.
struct UnigramParts {
  std::vector<std::pair<std::string, double>> pieces;
  std::int32_t unknown = -1;  // none: a text that needs it is refused
  bool byte_fallback = false;
};
[[nodiscard]] std::unique_ptr<WordModel> make_unigram(UnigramParts parts);

/// "model" of a tokenizer.json, and its tokens.
[[nodiscard]] std::unique_ptr<WordModel> make_model(const nlohmann::json& json);
void read_model_vocabulary(const nlohmann::json& json, Vocabulary& vocabulary);
/// "merges", as pairs or as text.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> model_merges(const nlohmann::json& json);
/// The type of a model; files of early versions leave it out.
[[nodiscard]] std::string model_type(const nlohmann::json& json);

}  // namespace weft
