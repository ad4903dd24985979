// Weights of four bits, 32 of which share a power of two, as gpt-oss is published.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weft::exchange {

/// Numbers that share a scale, and the bytes that they stand in.
inline constexpr std::int64_t mxfp4_block = 32, mxfp4_bytes = mxfp4_block / 2;

/// Numbers from `first` on. codes: two a byte, the lower half first; scales: exponents, 127 for one.
void unpack_mxfp4(std::span<const std::byte> codes, std::span<const std::byte> scales, std::int64_t first,
                  std::span<float> to);

}  // namespace weft::exchange
