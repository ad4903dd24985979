// Tokenizer: words to numbers and back, whatever the vocabulary is made of.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// Every method is const and may be called by many threads at once.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// The ids of a text. Bytes that are not UTF-8 are read as U+FFFD, as the originals read them.
  [[nodiscard]] virtual std::vector<std::int32_t> encode(std::string_view utf8) const = 0;
  /// The text of ids, always valid UTF-8; an id outside the vocabulary is refused.
  [[nodiscard]] virtual std::string decode(std::span<const std::int32_t> ids) const = 0;
  /// How many ids there are, added tokens included, padding not: V.
  [[nodiscard]] virtual std::int32_t size() const = 0;
  /// A token by its part ("eod", "bos", "eos", "pad", "unk", "cls", "sep", "mask") or by its own text.
  [[nodiscard]] virtual std::optional<std::int32_t> special(std::string_view name) const = 0;
  /// A token as the vocabulary writes it ("##able", "Ġthe", "▁the"); empty for an id that names nothing.
  [[nodiscard]] virtual std::string token(std::int32_t id) const = 0;
  /// Whether an id is a special token's: no part of a text that people read.
  [[nodiscard]] virtual bool is_special(std::int32_t) const { return false; }
};

/// What a decoder starts with: the token that begins a text, or padding, as T5's own tokenizers have it.
[[nodiscard]] inline std::optional<std::int32_t> decoder_start(const Tokenizer& tokenizer) {
  const auto begin = tokenizer.special("bos");
  return begin ? begin : tokenizer.special("pad");
}

/// V rounded up to whole units: ceil(V / unit) · unit. The unit is the user's, whatever the layout is.
[[nodiscard]] constexpr std::int64_t padded_vocabulary(std::int64_t size, std::int64_t unit = 128) {
  return (size + unit - 1) / unit * unit;
}

}  // namespace weft
