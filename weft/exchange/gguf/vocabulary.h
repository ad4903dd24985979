// Tokenizers as GGUF files have them, out of the files that stand beside a model, and back.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/exchange/gguf/header.h"

namespace weft::exchange::gguf {

/// The files of a tokenizer; those that are not there are empty.
struct TokenizerFiles {
  std::filesystem::path json;           // tokenizer.json
  std::filesystem::path sentencepiece;  // tokenizer.model
  std::filesystem::path vocab, merges;  // GPT-2's
  std::filesystem::path beside;         // the directory of tokenizer_config.json and what else there is
};
/// What lies in a directory; of a single file, that and its directory.
TokenizerFiles tokenizer_files(const std::filesystem::path& where);

/// By the numbers that files have for them.
enum class TokenType : std::uint8_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};

/// What a tokenizer is there.
struct Vocabulary {
  std::string model, pre;  // "gpt2" and how a text is split; or "llama", which joins pieces by their scores
  std::vector<std::string> tokens;
  std::vector<double> scores;  // of llama
  std::vector<std::int64_t> types;
  std::vector<std::string> merges;  // of gpt2
  std::optional<std::int64_t> begin, end, unknown, pad;
  std::optional<bool> add_begin, add_end, add_space;
  std::string template_of_chats;
  std::vector<std::string> notices;  // to be said once

  std::optional<std::int64_t> id_of(const std::string& token) const;
  /// Tokens for all rows of the model; further ones are "[PAD7]" and unused.
  void fill_up(std::int64_t rows, const std::string& who);
};

/// Fails with Kind::usage, saying what, where llama.cpp has no such tokenizer. `ends`: what ends a text where
/// the files do not say it.
Vocabulary vocabulary_of(const TokenizerFiles& files, std::int64_t rows, std::optional<std::int64_t> end);
Values keys_of(const Vocabulary& vocabulary);

/// How llama.cpp calls the way in which a tokenizer.json splits texts. Fails with Kind::usage where it has no
/// name for it.
std::string name_of_splits(const nlohmann::json& tokenizer, const std::string& who);
/// And back: "pre_tokenizer" and "ignore_merges" of a tokenizer.json; null where weft knows no such name.
nlohmann::json splits_of_name(const std::string& pre);
bool ignores_merges(const std::string& pre);

/// Pieces of a SentencePiece model. Fails with Kind::data where it is none, and with Kind::usage where its
/// pieces are not joined by scores.
void read_pieces(std::string_view model, const std::string& who, Vocabulary& to);

/// tokenizer.json and tokenizer_config.json of a file's keys; none where the file has no tokenizer. Fails
/// with Kind::data where the file contradicts itself. What cannot be made is said in `why_not`.
struct TokenizerMade {
  std::string json, config, why_not;
};
TokenizerMade tokenizer_of(const Values& keys, const std::string& who);

}  // namespace weft::exchange::gguf
