// A warpgroup's products around each wrapper, as they should be and with one mistake each. All arrays lie on
// the GPU.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace weft::testing {

enum class Products { of_64_rows, of_32_rows, of_columns };
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
};
/// The memory of two matrices of 64 rows, one behind the other, as it lies in a block's.
inline constexpr int matrix_halves = 64 * 64;
/// d [128 threads, sums] = or += the product of columns (rows) 16 to 31 of both matrices; of columns of the
/// right one with halves [128, 4] of the left.
void multiply_matrices(const ProductTrial& trial, float* d, const std::uint16_t* matrices,
                       const std::uint32_t* halves);
constexpr int sums_of(Products which) { return which == Products::of_32_rows ? 16 : 32; }

}  // namespace weft::testing
