#include "tests/support/gpu/scale_modes.h"

#include <cmath>

namespace emulated {
namespace {

std::int64_t up(std::int64_t size, std::int64_t to) { return (size + to - 1) / to * to; }

bool is_wide(int mode) {
  return mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F ||
         mode == CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
}

/// A tile has 128 lines and 4 blocks: 32 lines in a row of 16 bytes each, of which four lines share one.
std::int64_t byte_of(std::int64_t block, std::int64_t i, std::int64_t depth) {
  const std::int64_t tiles = up(depth, 128) / 128, tile = i / 128 * tiles + block / 4;
  return tile * 512 + i % 128 % 32 * 16 + i % 128 / 32 * 4 + block % 4;
}

}  // namespace

std::size_t OperandScale::bytes(std::int64_t depth, std::int64_t lines) const {
  switch (mode) {
    case CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0:
      return std::size_t(up(lines, 128) * up(depth, 128) / 32);
    case CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F:
      return std::size_t(4 * up(depth, 128) / 128 * up(lines, 4));
    case CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F:
      return std::size_t(4 * up(up(depth, 128) / 128, 4) * (up(lines, 128) / 128));
    default:
      return at ? sizeof(float) : 0;
  }
}

float OperandScale::of(std::int64_t k, std::int64_t i, std::int64_t depth, std::int64_t lines) const {
  const auto* numbers = static_cast<const float*>(at);
  switch (mode) {
    case CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0:
      return std::ldexp(1.0F, static_cast<const unsigned char*>(at)[byte_of(k / 32, i, depth)] - 127);
    case CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F:
      return numbers[k / 128 * up(lines, 4) + i];
    case CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F:
      return numbers[i / 128 * up(up(depth, 128) / 128, 4) + k / 128];
    default:
      return 1;
  }
}

bool go_together(const OperandScale& a, const OperandScale& b, int capability) {
  if (!a.of_blocks() && !b.of_blocks()) return true;
  if (!a.at || !b.at) return false;
  if (is_wide(a.mode) && is_wide(b.mode)) {
    const bool squares = a.mode == b.mode && a.mode == CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
    return capability == 9 && !squares;
  }
  return a.mode == b.mode && a.mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0 && capability >= 10;
}

}  // namespace emulated
