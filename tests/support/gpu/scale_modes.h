// What the fake of cuBLASLt knows of scales of eight bits: where those of blocks lie, as its manual has it,
// and which GPUs have them. Written apart from what the backend knows, so that they can disagree.
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>

namespace emulated {

/// Scales of an operand that lies along what is summed: element (k, i) of `depth` by `lines`.
struct OperandScale {
  int mode = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
  const void* at = nullptr;

  bool of_blocks() const { return mode != CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F; }
  /// Bytes that are read.
  std::size_t bytes(std::int64_t depth, std::int64_t lines) const;
  float of(std::int64_t k, std::int64_t i, std::int64_t depth, std::int64_t lines) const;
};

/// Whether a GPU of a compute capability multiplies operands with such scales.
bool go_together(const OperandScale& a, const OperandScale& b, int capability);

}  // namespace emulated
