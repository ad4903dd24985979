// SentencePiece models through libsentencepiece, the only file that knows it.
#include "weft/text/sentencepiece.h"

#include <sentencepiece_processor.h>

#include <map>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/text/pipeline.h"
#include "weft/text/unicode.h"

namespace weft {

namespace {

// Not in any vocabulary: marks a space that the model would drop.
constexpr std::string_view extra_space = "\xe2\x98\xaf";
constexpr std::string_view separator = "\xe2\x96\x81";

// Walks the fields of a protobuf message, because the library ends the process over pieces it cannot put into
// its trie.
class Message {
 public:
  explicit Message(std::string_view bytes) : bytes_(bytes) {}
  // The next field; its content where it is a text or a message. False at the end; a torn message is refused.
  bool next(std::uint64_t& field, std::string_view& content) {
    if (at_ == bytes_.size()) return false;
    const std::uint64_t key = number();
    field = key >> 3;
    content = {};
    switch (key & 7) {
      case 0:
        (void)number();
        break;
      case 1:
        (void)take(8);
        break;
      case 2:
        content = take(number());
        break;
      case 5:
        (void)take(4);
        break;
      default:
        torn();
    }
    return true;
  }

 private:
  [[noreturn]] void torn() const {
    fail(Kind::data, "SentencePiece: the model breaks off or is none, at byte ", at_, " of ", bytes_.size());
  }
  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) torn();
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    torn();
  }
  std::string_view bytes_;
  std::size_t at_ = 0;
};

// Field 1 of a model is a piece, whose field 1 is its text.
void check_pieces(std::string_view model) {
  std::uint64_t field = 0;
  std::string_view piece, content;
  std::int64_t count = 0;
  for (Message message(model); message.next(field, piece);) {
    if (field != 1) continue;
    std::string_view text;
    for (Message parts(piece); parts.next(field, content);) {
      if (field == 1) text = content;
    }
    if (text.empty() || text.find('\0') != std::string_view::npos || !unicode::valid(text)) {
      fail(Kind::data, "SentencePiece: piece ", count, " is empty, holds a zero byte or is not UTF-8");
    }
    ++count;
  }
  if (count == 0) fail(Kind::data, "SentencePiece: the model holds no piece");
}

class SentencePiece final : public Tokenizer {
 public:
  SentencePiece(std::string_view model, const SentencePieceOptions& options)
      : legacy_(options.legacy), ignore_extra_(options.ignore_extra_whitespaces) {
    check_pieces(model);
    const auto loaded = model_.LoadFromSerializedProto(absl::string_view(model.data(), model.size()));
    if (!loaded.ok()) fail(Kind::data, "SentencePiece: ", loaded.ToString());
    size_ = model_.GetPieceSize();
    if (!options.special.empty() && !legacy_) {
      fail(Kind::usage, "SentencePiece: ", options.special.size(),
           " special tokens, which a model takes at training or "
           "with {tokenizer_sentencepiece_legacy}");
    }
    for (const std::string& token : options.special) add_special(token);
    drops_spaces_ = pieces("x  y") == pieces("x y");
    separator_ = model_.PieceToId(absl::string_view(separator.data(), separator.size()));
  }

  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view utf8) const override {
    std::string text = unicode::valid(utf8) ? std::string(utf8) : unicode::repaired(utf8);
    const bool marks = drops_spaces_ && !ignore_extra_;
    if (marks) text = marked(text);
    std::vector<std::int32_t> ids;
    std::size_t at = 0;
    for (auto found = next_special(text, at); found.id >= 0; found = next_special(text, at)) {
      auto part = pieces(std::string_view(text).substr(at, found.begin - at));
      // Chat templates put a space between a special token and a word; it is no token.
      if (!ids.empty() && names_.contains(ids.back()) && !part.empty() && part[0] == separator_)
        part.erase(part.begin());
      ids.insert(ids.end(), part.begin(), part.end());
      ids.push_back(found.id);
      at = found.end;
    }
    const auto rest =
        marks ? marked_pieces(std::string_view(text).substr(at)) : pieces(std::string_view(text).substr(at));
    ids.insert(ids.end(), rest.begin(), rest.end());
    return ids;
  }

  [[nodiscard]] std::string decode(std::span<const std::int32_t> ids) const override {
    std::string text;
    std::vector<int> run;
    const auto flush = [&] {
      text += model_.DecodeIds(run);
      run.clear();
    };
    for (const std::int32_t id : ids) {
      check_id(id, size_);
      const auto name = names_.find(id);
      if (name == names_.end()) {
        run.push_back(id);
        continue;
      }
      flush();
      text += " " + name->second + " ";
    }
    flush();
    return legacy_ ? std::string(trim(text)) : text;
  }

  [[nodiscard]] std::int32_t size() const override { return size_; }

  [[nodiscard]] std::optional<std::int32_t> special(std::string_view name) const override {
    if (name == "eod" || name == "eos") return known(model_.eos_id());
    if (name == "bos") return known(model_.bos_id());
    if (name == "unk") return known(model_.unk_id());
    // Megatron hands on the model's -1 where it has no padding.
    if (name == "pad") return model_.pad_id();
    for (const char* part : {"cls", "sep", "mask"}) {
      if (name == part) return special(text("<", part, ">"));
    }
    if (const auto id = special_.find(std::string(name)); id != special_.end()) return id->second;
    const int id = model_.PieceToId(absl::string_view(name.data(), name.size()));
    return id == model_.unk_id() && token(id) != name ? std::nullopt : std::optional<std::int32_t>(id);
  }

  [[nodiscard]] std::string token(std::int32_t id) const override {
    if (const auto name = names_.find(id); name != names_.end()) return name->second;
    return id >= 0 && id < model_.GetPieceSize() ? model_.IdToPiece(id) : std::string();
  }
  [[nodiscard]] bool is_special(std::int32_t id) const override {
    return names_.contains(id) ||
           (id >= 0 && id < model_.GetPieceSize() && (model_.IsControl(id) || model_.IsUnknown(id)));
  }

 private:
  struct SpecialMatch {
    std::size_t begin = 0, end = 0;
    std::int32_t id = -1;
  };

  static std::optional<std::int32_t> known(int id) {
    return id < 0 ? std::nullopt : std::optional<std::int32_t>(id);
  }

  void add_special(const std::string& token) {
    if (token.empty() || special_.contains(token)) return;
    const int piece = model_.PieceToId(token);
    const std::int32_t id = piece == model_.unk_id() ? size_++ : piece;
    special_[token] = id;
    names_[id] = token;
    order_.push_back(token);
  }
  [[nodiscard]] std::vector<std::int32_t> pieces(std::string_view text) const {
    std::vector<int> ids;
    const auto status = model_.Encode(absl::string_view(text.data(), text.size()), &ids);
    if (!status.ok()) fail(Kind::data, "SentencePiece: ", status.ToString());
    return ids;
  }
  // The earliest special token, the one given first among those that begin there.
  [[nodiscard]] SpecialMatch next_special(const std::string& text, std::size_t from) const {
    SpecialMatch best;
    for (const std::string& token : order_) {
      const std::size_t at = text.find(token, from);
      if (at != std::string::npos && (best.id < 0 || at < best.begin))
        best = {at, at + token.size(), special_.at(token)};
    }
    return best;
  }
  // A mark for every space that follows a space, and for one at either end.
  [[nodiscard]] static std::string marked(const std::string& text) {
    std::string out;
    const std::string mark = " " + std::string(extra_space) + " ";
    for (std::size_t at = 0; at < text.size(); ++at) {
      const bool space = text[at] == ' ';
      const bool edge = space && (at == 0 || at + 1 == text.size());
      if (space && at > 0 && text[at - 1] == ' ' && !(at + 1 == text.size() || at == 1)) out += mark;
      if (edge) {
        out += mark;
      } else {
        out.push_back(text[at]);
      }
    }
    const auto end = out.find_last_not_of(" \t\r\n");
    return out.substr(0, end == std::string::npos ? 0 : end + 1);
  }
  [[nodiscard]] std::vector<std::int32_t> marked_pieces(std::string_view text) const {
    std::vector<std::int32_t> ids;
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find(extra_space, at), text.size());
      if (end > at) {
        auto part = pieces(std::string(text.substr(at, end - at)) + std::string(extra_space));
        if (!part.empty()) part.pop_back();
        ids.insert(ids.end(), part.begin(), part.end());
      }
      at = end + extra_space.size();
    }
    return ids;
  }

  sentencepiece::SentencePieceProcessor model_;
  bool legacy_, ignore_extra_;
  bool drops_spaces_ = false;
  std::int32_t size_ = 0, separator_ = -1;
  std::map<std::string, std::int32_t> special_;
  std::map<std::int32_t, std::string> names_;
  std::vector<std::string> order_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_sentencepiece(std::string_view model, const SentencePieceOptions& options) {
  return std::make_unique<SentencePiece>(model, options);
}

}  // namespace weft
