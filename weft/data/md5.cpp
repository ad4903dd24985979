// MD5 by RFC 1321.
#include "weft/data/md5.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace weft::data {
namespace {

using State = std::array<std::uint32_t, 4>;

constexpr std::array<int, 16> turns = {7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21};

// The i-th constant is the first 32 bits of |sin(i + 1)|.
std::uint32_t constant(std::size_t i) {
  return static_cast<std::uint32_t>(
      std::floor(std::abs(std::sin(static_cast<double>(i + 1))) * 4294967296.0));
}

void absorb(State& state, const unsigned char* block) {
  std::array<std::uint32_t, 16> words;
  std::memcpy(words.data(), block, 64);
  auto [a, b, c, d] = state;
  for (std::size_t i = 0; i < 64; ++i) {
    std::uint32_t f = 0;
    std::size_t word = i;
    switch (i / 16) {
      case 0:
        f = (b & c) | (~b & d);
        break;
      case 1:
        f = (d & b) | (~d & c);
        word = (5 * i + 1) % 16;
        break;
      case 2:
        f = b ^ c ^ d;
        word = (3 * i + 5) % 16;
        break;
      default:
        f = c ^ (b | ~d);
        word = (7 * i) % 16;
    }
    const std::uint32_t sum = a + f + constant(i) + words[word];
    a = d;
    d = c;
    c = b;
    b += std::rotl(sum, turns[4 * (i / 16) + i % 4]);
  }
  state = {state[0] + a, state[1] + b, state[2] + c, state[3] + d};
}

}  // namespace

std::string md5_hex(std::string_view bytes) {
  State state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
  std::size_t left = bytes.size();
  for (; left >= 64; left -= 64, at += 64) absorb(state, at);
  std::array<unsigned char, 128> tail{};
  std::copy(at, at + left, tail.begin());
  tail[left] = 0x80;
  const std::size_t size = left < 56 ? 64 : 128;
  const std::uint64_t bits = std::uint64_t{bytes.size()} * 8;
  std::memcpy(tail.data() + size - 8, &bits, 8);
  for (std::size_t i = 0; i < size; i += 64) absorb(state, tail.data() + i);
  std::string hex;
  for (const std::uint32_t word : state) {
    for (int byte = 0; byte < 4; ++byte) {
      const std::uint32_t value = (word >> (8 * byte)) & 255;
      hex += "0123456789abcdef"[value >> 4];
      hex += "0123456789abcdef"[value & 15];
    }
  }
  return hex;
}

}  // namespace weft::data
