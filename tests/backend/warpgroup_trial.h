// A warpgroup's products around each wrapper, as they should be and with one mistake each. All arrays lie on
// the GPU.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace weft::testing {

enum class Products { of_64_rows, of_32_rows, of_columns, of_panels };
enum class Misuse {
  none,
  not_begun,
  not_shown,
  shown_behind_the_barrier,
  read_early,
  written_early,
  refilled,
  unaligned,
  apart,
  left_under_way
};
struct ProductTrial {
  Products which = Products::of_64_rows;
  bool bf16 = true, adds = true;
  Misuse misuse = Misuse::none;
  bool left_by_depth = false, right_by_depth = false;  // of panels
};
/// The memory of five matrices of 64 rows, one behind the other, as it lies in a block's: one on the left,
/// and on the right the second, or of panels all four.
inline constexpr int matrices_there = 5, matrix_halves = 64 * 64;
/// d [128 threads, sums] = or += the product of columns (rows) 16 to 31 of both operands; of columns of the
/// right one with halves [128, 4] of the left.
void multiply_matrices(const ProductTrial& trial, float* d, const std::uint16_t* matrices,
                       const std::uint32_t* halves);
constexpr int sums_of(Products which) {
  if (which == Products::of_panels) return 128;
  return which == Products::of_32_rows ? 16 : 32;
}

}  // namespace weft::testing
