// Products that the warps of a block have under way.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tests/support/gpu/shadow.h"

namespace emulated {

/// How operands lie: the left one in registers, or in shared memory as the right one, and there with rows or,
/// by depth, with columns along the result.
struct Lie {
  bool in_registers, left_by_depth, right_by_depth;
};
/// Of a warp: 16 rows of a product, and when it was asked for.
struct Product {
  bool is_bf16, adds;
  Lie lie;
  int eights;
  std::uint64_t left, right;
  std::array<std::array<std::uint32_t, 4>, 32> halves;  // by lane
  std::size_t sums;                                     // which of the warp's
  Moment asked;
};
/// Sums of a warp's lanes that are nobody's business until products are waited for: what they will be.
struct Sums {
  std::array<float (*)[4], 32> at;
  int eights, under_way = 0;
  std::vector<float> numbers;  // [16, 8 eights]
};
inline constexpr std::size_t widest_product = 256;
/// A right operand as floats, by what is summed over: the warps of a warpgroup read the same one after
/// another.
struct Right {
  bool is_bf16 = false, by_depth = false;
  std::vector<std::uint16_t> bits;  // as they lay in shared memory, eight by eight
  float numbers[16][widest_product];
};
struct Warp {
  bool begun = false;                           // since it waited for a group
  std::vector<std::vector<Product>> groups{1};  // the last one is open
  std::vector<Sums> sums;
  std::uint64_t said = 0;  // of everything that the four warps must ask for alike
};

/// At a barrier and at a block's end.
void compare_warpgroups();
void look_for_products_under_way();

}  // namespace emulated
