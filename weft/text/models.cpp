#include "weft/text/models.h"

#include "weft/base/error.h"
#include "weft/text/char_bpe.h"
#include "weft/text/json.h"
#include "weft/text/unicode.h"

namespace weft {

using nlohmann::json;

namespace {

constexpr const char* who = "tokenizer.json";

class WordPiece final : public WordModel {
 public:
  explicit WordPiece(WordPieceParts parts) : parts_(std::move(parts)) {
    const auto id = parts_.vocabulary.id(parts_.unknown);
    if (!id) fail(Kind::data, "WordPiece: the unknown token '", parts_.unknown, "' is not in the vocabulary");
    unknown_ = *id;
    for (const std::string& token : parts_.vocabulary.tokens()) longest_ = std::max(longest_, token.size());
  }
  void encode(std::string_view word, std::vector<std::int32_t>& ids) const override {
    const std::size_t start = ids.size();
    if (characters(word) > parts_.most || !pieces(word, ids)) {
      ids.resize(start);
      ids.push_back(unknown_);
    }
  }

 private:
  static std::size_t characters(std::string_view word) {
    std::size_t count = 0;
    for (std::size_t at = 0; at < word.size(); at += unicode::rune_at(word, at).bytes) ++count;
    return count;
  }
  bool pieces(std::string_view word, std::vector<std::int32_t>& ids) const {
    std::string piece;
    for (std::size_t begin = 0; begin < word.size();) {
      std::size_t end = std::min(word.size(), begin + longest_);
      while (end < word.size() && (static_cast<unsigned char>(word[end]) & 0xc0) == 0x80) --end;
      std::optional<std::int32_t> id;
      for (; end > begin; end = unicode::previous(word, end)) {
        piece = begin > 0 ? parts_.prefix : "";
        piece += word.substr(begin, end - begin);
        id = parts_.vocabulary.id(piece);
        if (id) break;
      }
      if (!id) return false;
      ids.push_back(*id);
      begin = end;
    }
    return true;
  }

  WordPieceParts parts_;
  std::int32_t unknown_ = 0;
  std::size_t longest_ = 0;
};

class WordLevel final : public WordModel {
 public:
  WordLevel(Vocabulary vocabulary, const std::string& unknown)
      : vocabulary_(std::move(vocabulary)), unknown_(vocabulary_.id(unknown)) {}
  void encode(std::string_view word, std::vector<std::int32_t>& ids) const override {
    const auto id = vocabulary_.id(word);
    if (!id && !unknown_)
      fail(Kind::data, "WordLevel: '", word, "' is not in the vocabulary, and no unknown token is");
    ids.push_back(id ? *id : *unknown_);
  }

 private:
  Vocabulary vocabulary_;
  std::optional<std::int32_t> unknown_;
};

std::unique_ptr<WordModel> word_piece(const json& spec) {
  WordPieceParts parts;
  read_model_vocabulary(spec, parts.vocabulary);
  parts.unknown = text_field(spec, "unk_token", who);
  parts.prefix =
      spec.contains("continuing_subword_prefix") ? text_field(spec, "continuing_subword_prefix", who) : "##";
  if (const auto most = spec.find("max_input_chars_per_word"); most != spec.end()) {
    if (!most->is_number_unsigned())
      fail(Kind::data, who, ": expected a number in 'max_input_chars_per_word'");
    parts.most = most->get<std::size_t>();
  }
  return make_word_piece(std::move(parts));
}

std::unique_ptr<WordModel> unigram(const json& spec) {
  UnigramParts parts;
  const auto list = spec.find("vocab");
  if (list == spec.end() || !list->is_array())
    fail(Kind::data, who, ": expected a list in 'vocab' of a Unigram model");
  for (const json& piece : *list) {
    if (!piece.is_array() || piece.size() != 2 || !piece[0].is_string() || !piece[1].is_number()) {
      fail(Kind::data, who, ": a piece of a Unigram model is ",
           piece.dump(-1, ' ', false, json::error_handler_t::replace), ", expected a text and a number");
    }
    parts.pieces.emplace_back(piece[0].get<std::string>(), piece[1].get<double>());
  }
  if (const auto unknown = spec.find("unk_id"); unknown != spec.end() && !unknown->is_null()) {
    if (!unknown->is_number_unsigned() || *unknown >= parts.pieces.size()) {
      fail(Kind::data, who, ": unk_id ", unknown->dump(), " is none of ", parts.pieces.size(), " pieces");
    }
    parts.unknown = unknown->get<std::int32_t>();
  }
  parts.byte_fallback = flag_field(spec, "byte_fallback", false, who);
  return make_unigram(std::move(parts));
}

}  // namespace

std::unique_ptr<WordModel> make_word_piece(WordPieceParts parts) {
  return std::make_unique<WordPiece>(std::move(parts));
}

std::string model_type(const json& spec) {
  if (spec.contains("type")) return text_field(spec, "type", who);
  if (spec.contains("merges")) return "BPE";
  return spec.contains("vocab") && spec["vocab"].is_array() ? "Unigram"
         : spec.contains("max_input_chars_per_word")        ? "WordPiece"
                                                            : "WordLevel";
}

void read_model_vocabulary(const json& spec, Vocabulary& vocabulary) {
  const auto vocab = spec.find("vocab");
  if (vocab == spec.end()) fail(Kind::data, who, ": the model has no 'vocab'");
  if (!vocab->is_array()) return read_vocabulary(*vocab, who, vocabulary);
  std::int64_t id = 0;
  for (const json& piece : *vocab) {
    if (piece.is_array() && !piece.empty() && piece[0].is_string())
      vocabulary.set(piece[0].get<std::string>(), id, who);
    ++id;
  }
}

std::vector<std::pair<std::string, std::string>> model_merges(const json& spec) {
  const auto list = spec.find("merges");
  if (list == spec.end() || !list->is_array()) fail(Kind::data, who, ": expected a list in 'merges'");
  std::vector<std::pair<std::string, std::string>> merges;
  for (const json& merge : *list) {
    if (merge.is_string()) {
      const auto& line = merge.get_ref<const std::string&>();
      const auto space = line.find(' ');
      if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos) {
        fail(Kind::data, who, ": merge ", merges.size(), " is '", line,
             "', expected two tokens and one space between");
      }
      merges.emplace_back(line.substr(0, space), line.substr(space + 1));
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
    } else {
      fail(Kind::data, who, ": merge ", merges.size(), " is neither text nor a pair of texts");
    }
  }
  return merges;
}

std::unique_ptr<WordModel> make_model(const json& spec) {
  const std::string type = model_type(spec);
  if (type == "BPE") return make_char_bpe(spec);
  if (type == "WordPiece") return word_piece(spec);
  if (type == "Unigram") return unigram(spec);
  if (type == "WordLevel") {
    Vocabulary vocabulary;
    read_model_vocabulary(spec, vocabulary);
    return std::make_unique<WordLevel>(std::move(vocabulary), text_field(spec, "unk_token", who));
  }
  fail(Kind::data, who, ": there is no model of type '", type, "'");
}

}  // namespace weft
