// A tensor as kernels see it: rows of its last dimension, eight elements at a time, of any type and strides.
//
// Types and strides are the same for all threads of a launch, so a branch on them costs an instruction and
// saves dozens of kernels. Where eight elements lie side by side at 16 bytes, they are one or two loads.
#pragma once

#include <gpu.h>

#include <array>
#include <bit>

#include "weft/backend/cuda/place.h"

namespace weft::cuda {

struct Rows {
  static constexpr int most = Dims::max_rank - 1;
  unsigned char* data = nullptr;
  std::int64_t count = 0, width = 0, step = 0;
  std::int64_t sizes[most] = {}, strides[most] = {};  // of leading dims that could not be merged; or zeros
  int rank = 0;
  Dtype dtype = Dtype::f32;
  bool vector = false;
};

/// The host's side. An empty tensor gives rows without data.
Rows rows_of(const Tensor& tensor);
/// Rows of several tensors of one shape: a single one where all of them fill their memory in order.
template <class... Tensors>
std::array<Rows, sizeof...(Tensors)> flat(const Tensors&... tensors) {
  const bool one = (tensors.contiguous() && ...);
  return {rows_of(one ? tensors.view({tensors.elements()}) : tensors)...};
}
/// The only row of x, again and again.
Rows for_every_row(const Tensor& x, std::int64_t count);
/// The elements of x, each for a whole row of width elements.
Rows for_every_column(const Tensor& x, std::int64_t width);

/// Where a row begins, in elements.
__device__ __forceinline__ std::int64_t start_of(const Rows& rows, std::int64_t row) {
  if (rows.rank <= 1) return row * rows.strides[0];
  std::int64_t at = 0;
#pragma unroll
  for (int d = Rows::most - 1; d >= 0; --d) {
    if (d >= rows.rank) continue;
    if (d == 0) {
      at += row * rows.strides[0];
    } else {
      at += row % rows.sizes[d] * rows.strides[d];
      row /= rows.sizes[d];
    }
  }
  return at;
}

__device__ __forceinline__ float get(const Rows& rows, std::int64_t at) {
  if (rows.dtype == Dtype::f32) return reinterpret_cast<const float*>(rows.data)[at];
  const std::uint32_t bits = reinterpret_cast<const std::uint16_t*>(rows.data)[at];
  return rows.dtype == Dtype::bf16 ? gpu::low<bf16>(bits) : gpu::low<f16>(bits);
}
__device__ __forceinline__ void put(const Rows& rows, std::int64_t at, float x) {
  if (rows.dtype == Dtype::f32)
    reinterpret_cast<float*>(rows.data)[at] = x;
  else
    reinterpret_cast<std::uint16_t*>(rows.data)[at] =
        std::uint16_t(rows.dtype == Dtype::bf16 ? gpu::pack<bf16>(x, 0) : gpu::pack<f16>(x, 0));
}

struct Eight {
  float x[8];
};

inline constexpr float log2_e = 1.4426950408889634F;  // times this a power of e is one of two

template <class Half>
__device__ __forceinline__ Eight widen(const uint4& pairs) {
  return {{gpu::low<Half>(pairs.x), gpu::high<Half>(pairs.x), gpu::low<Half>(pairs.y),
           gpu::high<Half>(pairs.y), gpu::low<Half>(pairs.z), gpu::high<Half>(pairs.z),
           gpu::low<Half>(pairs.w), gpu::high<Half>(pairs.w)}};
}
template <class Half>
__device__ __forceinline__ uint4 shorten(const Eight& e) {
  return {gpu::pack<Half>(e.x[0], e.x[1]), gpu::pack<Half>(e.x[2], e.x[3]), gpu::pack<Half>(e.x[4], e.x[5]),
          gpu::pack<Half>(e.x[6], e.x[7])};
}

/// Eight elements on their way: who asks for several before it unpacks one waits for memory once.
struct Packed {
  uint4 low, high;  // the second of f32 alone
};

__device__ __forceinline__ Packed ask(const Rows& rows, std::int64_t start, std::int64_t column) {
  if (!rows.data) return {};
  if (rows.vector && column + 8 <= rows.width) {
    const unsigned char* at = rows.data + (start + column) * (rows.dtype == Dtype::f32 ? 4 : 2);
    if (rows.dtype == Dtype::f32) return {gpu::load<uint4>(at), gpu::load<uint4>(at + 16)};
    return {gpu::load<uint4>(at), {}};
  }
  std::uint32_t x[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const float one = column + i < rows.width ? get(rows, start + (column + i) * rows.step) : 0.0F;
    x[i] = std::bit_cast<std::uint32_t>(one);
  }
  return {{x[0], x[1], x[2], x[3]}, {x[4], x[5], x[6], x[7]}};
}
__device__ __forceinline__ Eight unpack(const Rows& rows, std::int64_t column, const Packed& e) {
  if (rows.dtype != Dtype::f32 && rows.vector && column + 8 <= rows.width)
    return rows.dtype == Dtype::bf16 ? widen<bf16>(e.low) : widen<f16>(e.low);
  const auto number = [](std::uint32_t bits) { return std::bit_cast<float>(bits); };
  return {{number(e.low.x), number(e.low.y), number(e.low.z), number(e.low.w), number(e.high.x),
           number(e.high.y), number(e.high.z), number(e.high.w)}};
}
/// Columns [column, column + 8) of the row that begins at start; zeros beyond its end, and of an empty
/// tensor.
__device__ __forceinline__ Eight read(const Rows& rows, std::int64_t start, std::int64_t column) {
  return unpack(rows, column, ask(rows, start, column));
}
__device__ __forceinline__ void write(const Rows& rows, std::int64_t start, std::int64_t column,
                                      const Eight& e) {
  if (!rows.data) return;
  if (rows.vector && column + 8 <= rows.width) {
    unsigned char* at = rows.data + (start + column) * (rows.dtype == Dtype::f32 ? 4 : 2);
    if (rows.dtype == Dtype::f32) {
      gpu::store(at, float4{e.x[0], e.x[1], e.x[2], e.x[3]});
      gpu::store(at + 16, float4{e.x[4], e.x[5], e.x[6], e.x[7]});
    } else {
      gpu::store(at, rows.dtype == Dtype::bf16 ? shorten<bf16>(e) : shorten<f16>(e));
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < 8; ++i)
    if (column + i < rows.width) put(rows, start + (column + i) * rows.step, e.x[i]);
}
/// What storing would make of it.
__device__ __forceinline__ float rounded(Dtype dtype, float x) {
  if (dtype == Dtype::f32) return x;
  return dtype == Dtype::bf16 ? gpu::low<bf16>(gpu::pack<bf16>(x, 0)) : gpu::low<f16>(gpu::pack<f16>(x, 0));
}

}  // namespace weft::cuda
