// Unicode as tokenizers need it: reading UTF-8, classes of code points, normal forms.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::unicode {

/// A code point and how many bytes it took; no bytes at the end of the text.
struct Rune {
  char32_t code = 0;
  std::uint32_t bytes = 0;
};

/// The code point at `at` of valid UTF-8, `at` on a boundary.
[[nodiscard]] inline Rune rune_at(std::string_view text, std::size_t at) {
  if (at >= text.size()) return {};
  const auto byte = [&](std::size_t k) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[at + k]));
  };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xe0) return {(lead & 0x1f) << 6 | (byte(1) & 0x3f), 2};
  if (lead < 0xf0) return {(lead & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f), 3};
  return {(lead & 0x07) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f), 4};
}

/// Where the code point before `at` begins.
[[nodiscard]] inline std::size_t previous(std::string_view text, std::size_t at) {
  do --at;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80);
  return at;
}

[[nodiscard]] bool valid(std::string_view bytes);
/// Valid UTF-8 with U+FFFD for every maximal part that is none: what Python's and Rust's lossy reading give.
[[nodiscard]] std::string repaired(std::string_view bytes, std::string_view replacement = "\xef\xbf\xbd");
void append(std::string& out, char32_t code);
[[nodiscard]] std::u32string decoded(std::string_view utf8);

enum class Form { nfc, nfd, nfkc, nfkd };
[[nodiscard]] std::string normalized(std::string_view utf8, Form form);

/// Extended grapheme clusters.
struct Grapheme {
  std::size_t begin = 0, end = 0;
};
[[nodiscard]] std::vector<Grapheme> graphemes(std::string_view utf8);

[[nodiscard]] bool is_letter(char32_t code);
[[nodiscard]] bool is_number(char32_t code);
/// The property White_Space, which is what \s means to the originals.
[[nodiscard]] bool is_space(char32_t code);
[[nodiscard]] bool is_mark(char32_t code);
[[nodiscard]] bool is_nonspacing_mark(char32_t code);
[[nodiscard]] bool is_punctuation(char32_t code);
/// General categories Cc, Cf, Cn, Co, Cs.
[[nodiscard]] bool is_other(char32_t code);
/// \w: letters, marks, decimal digits, letter numbers, connectors.
[[nodiscard]] bool is_word(char32_t code);
[[nodiscard]] bool is_cjk(char32_t code);
/// Full lower casing, one code point at a time (U+0130 becomes two; no final sigma).
void append_lower(std::string& out, char32_t code);

/// The classes that pre-tokenization asks for, one byte a code point, looked up in two steps.
class Classes {
 public:
  enum Bit : std::uint8_t {
    letter = 1,
    number = 2,
    space = 4,
    newline = 8,  // \r or \n
    upper = 16,   // Lu Lt Lm Lo M: what may begin a word of mixed case
    lower = 32,   // Ll Lm Lo M: what may end it
  };
  Classes();
  [[nodiscard]] std::uint8_t of(char32_t code) const { return pages_[page_of_[code >> 8]][code & 0xff]; }
  [[nodiscard]] std::uint8_t of_ascii(unsigned char byte) const { return ascii_[byte]; }

 private:
  std::array<std::uint16_t, 0x1100> page_of_{};
  std::vector<std::array<std::uint8_t, 256>> pages_;
  std::array<std::uint8_t, 128> ascii_{};
};

}  // namespace weft::unicode
