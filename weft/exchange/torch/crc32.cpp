#include "weft/exchange/torch/crc32.h"

#include <array>
#include <bit>
#include <cstring>

namespace weft::exchange::torch {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::size_t stride = 8;
using Table = std::array<std::array<std::uint32_t, 256>, stride>;

// tables[k][b]: what byte b does to the sum when k bytes come behind it.
constexpr Table make_tables() {
  Table tables{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t sum = b;
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1U) * 0xedb88320U);
    tables[0][b] = sum;
  }
  for (std::size_t k = 1; k < stride; ++k)
    for (std::size_t b = 0; b < 256; ++b)
      tables[k][b] = (tables[k - 1][b] >> 8) ^ tables[0][tables[k - 1][b] & 255U];
  return tables;
}

constexpr Table tables = make_tables();

}  // namespace

std::uint32_t crc32(std::span<const std::byte> bytes) {
  std::uint32_t sum = ~0U;
  std::size_t at = 0;
  for (; bytes.size() - at >= stride; at += stride) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, stride);
    word ^= sum;
    sum = 0;
    for (std::size_t k = 0; k < stride; ++k) sum ^= tables[stride - 1 - k][(word >> (8 * k)) & 255U];
  }
  for (; at < bytes.size(); ++at)
    sum = (sum >> 8) ^ tables[0][(sum ^ std::to_integer<std::uint32_t>(bytes[at])) & 255U];
  return ~sum;
}

}  // namespace weft::exchange::torch
