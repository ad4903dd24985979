// The alphabet in which byte-level vocabularies write bytes: printable ones as themselves, the rest from
// U+0100 on.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft {

class ByteAlphabet {
 public:
  constexpr ByteAlphabet() {
    for (auto& byte : byte_of_) byte = -1;
    char32_t next = 256;
    for (int byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
      const char32_t code = printable ? static_cast<char32_t>(byte) : next++;
      code_of_[static_cast<std::size_t>(byte)] = code;
      byte_of_[code] = static_cast<std::int16_t>(byte);
    }
  }
  [[nodiscard]] constexpr char32_t code_of(unsigned char byte) const { return code_of_[byte]; }
  /// The byte a code point stands for, or -1.
  [[nodiscard]] constexpr int byte_of(char32_t code) const {
    return code < byte_of_.size() ? byte_of_[code] : -1;
  }

  [[nodiscard]] std::string written(std::string_view bytes) const;
  /// Nothing where a code point stands for no byte.
  [[nodiscard]] std::optional<std::string> bytes(std::string_view written) const;

 private:
  std::array<char32_t, 256> code_of_{};
  std::array<std::int16_t, 324> byte_of_{};
};

inline constexpr ByteAlphabet byte_alphabet;

}  // namespace weft
