// One pass over elements: eight of each operand a thread.
#pragma once

#include "weft/backend/cuda/queue.h"
#include "weft/backend/cuda/rows.h"

namespace weft::cuda {

/// f(in, out) from and to arrays of one element of each operand; or f.for_all(each), which calls each(such a
/// function) once. Operands have as many rows as the first result, each row as long.
template <class F, int ins, int outs>
struct Pass {
  Rows out[outs], in[ins];
  F f;
  std::int64_t chunks, total;  // of eight: a row's, and all
};

inline std::int64_t chunks_of(std::int64_t width) { return (width + 7) / 8; }

/// The row of a chunk of eight. A division in 64 bits is a hundred instructions, and a pass has some hundred.
__device__ __forceinline__ std::int64_t row_of(std::int64_t chunk, std::int64_t of_row, std::int64_t total) {
  if (total == of_row) return 0;
  return total >> 32 ? chunk / of_row : std::uint32_t(chunk) / std::uint32_t(of_row);
}

template <class F, int ins, int outs>
__global__ void __launch_bounds__(256) pass_over(Pass<F, ins, outs> pass) {
  const std::int64_t chunk = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (chunk >= pass.total) return;
  const std::int64_t row = row_of(chunk, pass.chunks, pass.total);
  const std::int64_t column = (chunk - row * pass.chunks) * 8;
  Packed packed[ins];
  Eight in[ins], out[outs];
#pragma unroll
  for (int k = 0; k < ins; ++k) packed[k] = ask(pass.in[k], start_of(pass.in[k], row), column);
#pragma unroll
  for (int k = 0; k < ins; ++k) in[k] = unpack(pass.in[k], column, packed[k]);
  const auto each = [&](const auto& f) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      float x[ins], y[outs];
#pragma unroll
      for (int k = 0; k < ins; ++k) x[k] = in[k].x[i];
      f(x, y);
#pragma unroll
      for (int k = 0; k < outs; ++k) out[k].x[i] = y[k];
    }
  };
  if constexpr (requires { pass.f.for_all(each); })
    pass.f.for_all(each);
  else
    each(pass.f);
#pragma unroll
  for (int k = 0; k < outs; ++k) write(pass.out[k], start_of(pass.out[k], row), column, out[k]);
}

template <int outs, int ins, class F>
void run_pass(Queue& queue, const Rows (&out)[outs], const Rows (&in)[ins], F f) {
  Pass<F, ins, outs> pass{{}, {}, f, chunks_of(out[0].width), 0};
  for (int k = 0; k < outs; ++k) pass.out[k] = out[k];
  for (int k = 0; k < ins; ++k) pass.in[k] = in[k];
  pass.total = out[0].count * pass.chunks;
  if (pass.total == 0) return;
  gpu::launch(queue, {(pass.total + 255) / 256, 256}, pass_over<F, ins, outs>, pass);
}

}  // namespace weft::cuda
