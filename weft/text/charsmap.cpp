// SentencePiece's compiled normalization: a double-array trie from prefixes to replacements.
#include <cstring>
#include <vector>

#include "weft/base/error.h"
#include "weft/text/normalizers.h"
#include "weft/text/unicode.h"

namespace weft {

namespace {

// The units of darts-clone: bit 31 marks a leaf (the rest is its value), bit 8 says a leaf follows at the
// label 0, bits 0 to 7 and 31 are the label, bits 10 to 30 the offset, shifted by 8 more where bit 9 is set.
class Trie {
 public:
  explicit Trie(std::vector<std::uint32_t> units) : units_(std::move(units)) {}

  // The value of the shortest prefix of `text` that is a key, as the original takes it; -1 where there is
  // none.
  [[nodiscard]] std::int64_t find(std::string_view text) const {
    std::size_t node = units_.empty() ? 0 : offset(units_[0]);
    for (std::size_t k = 0; k < text.size(); ++k) {
      const auto byte = static_cast<unsigned char>(text[k]);
      node ^= byte;
      // A key holds no zero byte, and a file may point anywhere.
      if (byte == 0 || node >= units_.size() || label(units_[node]) != byte) break;
      const std::uint32_t unit = units_[node];
      node ^= offset(unit);
      if ((unit >> 8 & 1) != 0 && node < units_.size()) return units_[node] & 0x7fffffff;
    }
    return -1;
  }

 private:
  static std::size_t offset(std::uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); }
  static std::uint32_t label(std::uint32_t unit) { return unit & (1u << 31 | 0xff); }
  std::vector<std::uint32_t> units_;
};

class Charsmap final : public Normalizer {
 public:
  Charsmap(std::vector<std::uint32_t> units, std::string replacements)
      : trie_(std::move(units)), replacements_(std::move(replacements)) {}

  // A grapheme of less than six bytes is looked up whole first, then code point by code point.
  [[nodiscard]] std::string apply(std::string text) const override {
    std::string out;
    out.reserve(text.size());
    for (const unicode::Grapheme& part : unicode::graphemes(text)) {
      const std::string_view whole = std::string_view(text).substr(part.begin, part.end - part.begin);
      if (whole.size() < 6 && replaced(whole, out)) continue;
      for (std::size_t at = 0; at < whole.size();) {
        const std::size_t length = unicode::rune_at(whole, at).bytes;
        const std::string_view one = whole.substr(at, length);
        if (!replaced(one, out)) out.append(one);
        at += length;
      }
    }
    return out;
  }

 private:
  // Appends the replacement of a key that begins `text`; what of `text` is behind it is lost, as in the
  // original.
  bool replaced(std::string_view text, std::string& out) const {
    const std::int64_t found = trie_.find(text);
    if (found < 0 || static_cast<std::size_t>(found) >= replacements_.size()) return false;
    out.append(replacements_.c_str() + found);
    return true;
  }
  Trie trie_;
  std::string replacements_;
};

}  // namespace

std::unique_ptr<Normalizer> make_charsmap(const std::string& blob) {
  std::uint32_t size = 0;
  if (blob.empty()) return nullptr;
  if (blob.size() >= sizeof size) std::memcpy(&size, blob.data(), sizeof size);
  if (blob.size() < sizeof size || size % 4 != 0 || size > blob.size() - sizeof size) {
    fail(Kind::data, "charsmap: a trie of ", size, " bytes in a blob of ", blob.size());
  }
  std::vector<std::uint32_t> units(size / 4);
  std::memcpy(units.data(), blob.data() + sizeof size, size);
  std::string replacements = blob.substr(sizeof size + size);
  if (!unicode::valid(replacements)) fail(Kind::data, "charsmap: the replacements are not UTF-8");
  return std::make_unique<Charsmap>(std::move(units), std::move(replacements));
}

}  // namespace weft
