// Types of GGUF whose numbers lie in blocks: a few bits for each, and what these are multiplied by once a
// block or for a part of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/exchange/gguf/blocks.h"

namespace weft::exchange::gguf {

struct Packing {
  NumberType type;
  std::int64_t numbers, bytes;  // of a block
  void (*decode)(const std::byte* block, float* to);
};

inline constexpr std::int64_t most_in_a_block = 256;

std::span<const Packing> packings();
/// Null where numbers of the type lie one by one.
const Packing* packing_of(NumberType type);

}  // namespace weft::exchange::gguf
