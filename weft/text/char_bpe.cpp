#include "weft/text/char_bpe.h"

#include "weft/base/error.h"
#include "weft/text/bpe.h"
#include "weft/text/json.h"
#include "weft/text/unicode.h"

namespace weft {

using nlohmann::json;

namespace {

constexpr const char* who = "tokenizer.json";

std::string optional_text(const json& spec, const char* key) {
  return spec.contains(key) && !spec[key].is_null() ? text_field(spec, key, who) : std::string();
}

class CharBpe final : public WordModel {
 public:
  explicit CharBpe(const json& spec)
      : prefix_(optional_text(spec, "continuing_subword_prefix")),
        suffix_(optional_text(spec, "end_of_word_suffix")),
        fuse_unknown_(flag_field(spec, "fuse_unk", false, who)),
        byte_fallback_(flag_field(spec, "byte_fallback", false, who)),
        whole_first_(flag_field(spec, "ignore_merges", false, who)),
        joiner_(PairTable()) {
    if (spec.contains("dropout") && !spec["dropout"].is_null() && spec["dropout"] != 0) {
      fail(Kind::data, who, ": the model has dropout ", spec["dropout"].dump(),
           ", which weft does not draw; set it to null");
    }
    read_model_vocabulary(spec, vocabulary_);
    const std::string unknown = optional_text(spec, "unk_token");
    if (!unknown.empty()) {
      unknown_ = vocabulary_.id(unknown);
      if (!unknown_) fail(Kind::data, who, ": the unknown token '", unknown, "' is not in the vocabulary");
    }
    std::vector<Merge> merges;
    for (const auto& [left, right] : model_merges(spec)) {
      const auto rank = static_cast<std::int32_t>(merges.size());
      // A right part that continues a word leaves its prefix behind.
      const std::string joined = left + right.substr(std::min(prefix_.size(), right.size()));
      merges.push_back({id_of(left, rank), id_of(right, rank), id_of(joined, rank), rank});
    }
    joiner_ = Joiner(PairTable(merges));
  }

  void encode(std::string_view word, std::vector<std::int32_t>& ids) const override {
    if (word.empty()) return;
    if (whole_first_) {
      if (const auto id = vocabulary_.id(word)) return ids.push_back(*id);
    }
    std::vector<std::int32_t> symbols;
    bool pending = false;  // an unknown token that later ones may join; bytes overtake it, as in the original
    const auto flush = [&] {
      if (pending) symbols.push_back(*unknown_);
      pending = false;
    };
    std::string name;
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t length = unicode::rune_at(word, at).bytes;
      name = at > 0 ? prefix_ : "";
      name += word.substr(at, length);
      at += length;
      if (at == word.size()) name += suffix_;
      if (const auto id = vocabulary_.id(name)) {
        flush();
        symbols.push_back(*id);
      } else if (byte_fallback_ && append_byte_tokens(name, vocabulary_, symbols)) {
        continue;
      } else if (unknown_) {
        if (!fuse_unknown_) flush();
        pending = true;
      }
    }
    flush();
    joiner_.join(symbols);
    ids.insert(ids.end(), symbols.begin(), symbols.end());
  }

 private:
  std::int32_t id_of(const std::string& token, std::int32_t rank) const {
    if (const auto id = vocabulary_.id(token)) return *id;
    fail(Kind::data, who, ": merge ", rank, " needs '", token, "', which the vocabulary does not hold");
  }

  std::string prefix_, suffix_;
  bool fuse_unknown_, byte_fallback_, whole_first_;
  Vocabulary vocabulary_;
  std::optional<std::int32_t> unknown_;
  Joiner joiner_;
};

}  // namespace

bool append_byte_tokens(std::string_view bytes, const Vocabulary& vocabulary,
                        std::vector<std::int32_t>& ids) {
  constexpr char digits[] = "0123456789ABCDEF";
  const std::size_t start = ids.size();
  for (const char letter : bytes) {
    const auto byte = static_cast<unsigned char>(letter);
    const char name[] = {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>', 0};
    const auto id = vocabulary.id(name);
    if (!id) {
      ids.resize(start);
      return false;
    }
    ids.push_back(*id);
  }
  return true;
}

std::unique_ptr<WordModel> make_char_bpe(const json& spec) { return std::make_unique<CharBpe>(spec); }

}  // namespace weft
