// A number is not finite where all bits of its exponent are set; that is a comparison of whole numbers, which
// compilers turn into a few instructions for many of them.
#include "weft/checkpoint/finite.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace weft::checkpoint {
namespace {

template <class Bits>
std::int64_t first_of(std::span<const std::byte> bytes, Bits exponent) {
  constexpr std::size_t at_once = 1024;
  std::array<Bits, at_once> part;
  const std::size_t count = bytes.size() / sizeof(Bits);
  for (std::size_t from = 0; from < count; from += at_once) {
    const std::size_t here = std::min(at_once, count - from);
    std::memcpy(part.data(), bytes.data() + from * sizeof(Bits), here * sizeof(Bits));
    Bits any = 0;
    for (std::size_t i = 0; i < here; ++i) any |= Bits((part[i] & exponent) == exponent ? 1 : 0);
    for (std::size_t i = 0; any != 0 && i < here; ++i)
      if ((part[i] & exponent) == exponent) return static_cast<std::int64_t>(from + i);
  }
  return -1;
}

}  // namespace

std::int64_t first_not_finite(std::span<const std::byte> bytes, Dtype dtype) {
  switch (dtype) {
    case Dtype::f32:
      return first_of(bytes, std::uint32_t{0x7f800000});
    case Dtype::f64:
      return first_of(bytes, std::uint64_t{0x7ff0000000000000});
    case Dtype::bf16:
      return first_of(bytes, std::uint16_t{0x7f80});
    case Dtype::f16:
      return first_of(bytes, std::uint16_t{0x7c00});
    default:
      return -1;
  }
}

}  // namespace weft::checkpoint
