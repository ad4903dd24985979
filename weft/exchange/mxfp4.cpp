#include "weft/exchange/mxfp4.h"

#include <array>
#include <cmath>

namespace weft::exchange {
namespace {

// A sign, two bits of exponent, one of mantissa.
constexpr std::array<float, 16> numbers{0,     0.5F,  1,  1.5F,  2,  3,  4,  6,
                                        -0.0F, -0.5F, -1, -1.5F, -2, -3, -4, -6};

}  // namespace

void unpack_mxfp4(std::span<const std::byte> codes, std::span<const std::byte> scales, std::int64_t first,
                  std::span<float> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::int64_t at = first + std::int64_t(i);
    const auto pair = std::to_integer<unsigned>(codes[std::size_t(at / 2)]);
    const int exponent = std::to_integer<int>(scales[std::size_t(at / mxfp4_block)]) - 127;
    to[i] = std::ldexp(numbers[at % 2 == 0 ? pair & 15U : pair >> 4U], exponent);
  }
}

}  // namespace weft::exchange
