#include "weft/exchange/torch/utf8.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace weft::exchange::torch {
namespace {

// How long the letter is that begins at `at`; 0 where none does.
std::size_t letter(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || length > text.size() - at) return 0;
  std::uint32_t code = lead & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[at + i]);
    if ((next & 0xc0) != 0x80) return 0;
    code = (code << 6) | (next & 0x3fU);
  }
  constexpr std::array<std::uint32_t, 5> smallest{0, 0, 0x80, 0x800, 0x10000};
  return code < smallest[length] || code > 0x10ffff ? 0 : length;
}

}  // namespace

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = letter(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

}  // namespace weft::exchange::torch
