// Matrices in shared memory as products of warpgroups name them; for warpgroup.h and its twin.
#pragma once

#include <cstdint>

namespace gpu {

/// Rows of 64 halves: eight of them lie in 1,024 bytes, on 1,024, their pieces of 16 bytes each at piece ^
/// row % 8. A name has 64 bits. The lower ones say where the matrix begins, in 16 bytes, and how far it is to
/// the next 64 columns, where rows are what is summed over; the upper ones, which are the same of all, how
/// far it is from eight rows to the next, and the form.
struct Matrix {
  std::uint32_t low;
};
inline constexpr unsigned matrix_form = 1U << 30 | 1024 >> 4;

/// At a place of shared memory.
constexpr Matrix matrix_of(std::uint32_t place) { return {place >> 4 | 1U << 16}; }
/// Bytes further on: whole eights of rows, or 32 for the next 16 columns.
constexpr Matrix further(Matrix from, int bytes) { return {from.low + std::uint32_t(bytes >> 4)}; }
/// With the next 64 columns so many bytes behind these, of less than 256 KiB.
constexpr Matrix spread(Matrix from, int bytes) {
  return {(from.low & 0xFFFFU) | std::uint32_t(bytes >> 4) << 16};
}

}  // namespace gpu
