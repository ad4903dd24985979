// Updates, element by element: one pass over master, moments, gradient and the copy that layers read.
#include "weft/backend/cuda/kernels.h"
#include "weft/backend/cuda/pointwise.h"

namespace weft {
namespace {

using namespace cuda;

// ---- moments of fewer bits than f32

/// A moment in memory: of what type, and whether as its root.
struct Moment {
  Rows rows;
  bool root;
};
Moment moment_of(const Tensor& t, bool second) {
  return {rows_of(t), second && moment_scale(t.dtype()) != 1};
}

__device__ __forceinline__ Eight read_moment(const Moment& moment, std::int64_t column) {
  const Rows& rows = moment.rows;
  Eight out;
  if (rows.dtype == Dtype::f8e5m2) {
#pragma unroll
    for (int i = 0; i < 8; ++i)
      out.x[i] = column + i < rows.width ? float(f8e5m2::from_bits(rows.data[column + i])) : 0.0F;
  } else {
    out = read(rows, 0, column);
  }
  const float scale = moment_scale(rows.dtype);
  if (scale == 1) return out;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    out.x[i] /= scale;
    if (moment.root) out.x[i] *= out.x[i];
  }
  return out;
}

/// Up or down, the nearer the more often. Which of them follows from x and the dice alone: no layout shows.
__device__ __forceinline__ float by_chance(float x, Dtype dtype, std::uint32_t dice) {
  const unsigned dropped = dtype == Dtype::f8e5m2 ? 21 : dtype == Dtype::f16 ? 13 : 16;
  const float smallest = dtype == Dtype::bf16 ? 0 : 0x1p-14F;
  const float largest = dtype == Dtype::f8e5m2 ? 57344.0F
                        : dtype == Dtype::f16  ? 65504.0F
                                               : std::bit_cast<float>(0x7f7f0000U);
  std::uint32_t h = (std::bit_cast<std::uint32_t>(x) ^ dice) * 0x85ebca6bU;
  h = (h ^ (h >> 15)) * 0xc2b2ae35U;
  h ^= h >> 13;
  const float size = fminf(fabsf(x), largest), shift = size < smallest ? smallest : 0.0F;
  const auto bits = std::bit_cast<std::uint32_t>(size + shift) + (h >> (32 - dropped));
  return copysignf(std::bit_cast<float>(bits >> dropped << dropped) - shift, x);
}

__device__ __forceinline__ void write_moment(const Moment& moment, std::int64_t column, Eight e,
                                             std::uint32_t dice) {
  const Rows& rows = moment.rows;
  if (rows.dtype == Dtype::f32) return write(rows, 0, column, e);
  const float scale = moment_scale(rows.dtype);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    e.x[i] = by_chance((moment.root ? sqrtf(e.x[i]) : e.x[i]) * scale, rows.dtype, dice);
  if (rows.dtype != Dtype::f8e5m2) return write(rows, 0, column, e);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    if (column + i < rows.width) rows.data[column + i] = f8e5m2(e.x[i]).bits;
}

// ---- adam

struct Adam {
  Rows master, copy, grad;
  Moment m, v;
  AdamArgs how;
  bool direction;  // only where it would go, into grad
};

struct Weight {
  float master, m, v, slope;
};
/// Moments move; what to go by is returned, decay included.
__device__ __forceinline__ float step(const AdamArgs& how, Weight& w) {
  const float slope = w.slope * how.grad_scale + (how.decoupled ? 0 : how.decay * w.master);
  w.m = how.beta1 * w.m + (1 - how.beta1) * slope;
  w.v = how.beta2 * w.v + (1 - how.beta2) * slope * slope;
  const float corrected = w.v / how.correction2;
  const float divisor = how.epsilon_inside ? sqrtf(corrected + how.epsilon) : sqrtf(corrected) + how.epsilon;
  return w.m / how.correction1 / divisor + (how.decoupled ? how.decay * w.master : 0);
}

__global__ void __launch_bounds__(256) update(Adam job) {
  const std::int64_t column = (std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x) * 8;
  if (column >= job.master.width) return;
  Eight master = read(job.master, 0, column), grad = read(job.grad, 0, column);
  Eight m = read_moment(job.m, column), v = read_moment(job.v, column);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    Weight w{master.x[i], m.x[i], v.x[i], grad.x[i]};
    grad.x[i] = step(job.how, w);
    master.x[i] -= job.how.rate * grad.x[i];
    m.x[i] = w.m;
    v.x[i] = w.v;
  }
  write_moment(job.m, column, m, job.how.dice);
  write_moment(job.v, column, v, job.how.dice);
  if (job.direction) return write(job.grad, 0, column, grad);
  write(job.master, 0, column, master);
  write(job.copy, 0, column, master);
}

void run(Queue& queue, const Adam& job) {
  if (job.master.width > 0) gpu::launch(queue, {(chunks_of(job.master.width) + 255) / 256, 256}, update, job);
}

// ---- the others: results first, then what they are made of

struct Sgd {
  SgdArgs how;
  __device__ __forceinline__ void operator()(const float (&in)[3], float (&out)[3]) const {
    const float slope = in[2] * how.grad_scale + how.decay * in[0];
    out[1] = how.momentum * in[1] + slope;
    out[0] = out[2] = in[0] - how.rate * out[1];
  }
};
struct Lion {
  LionArgs how;
  __device__ __forceinline__ void operator()(const float (&in)[3], float (&out)[3]) const {
    const float slope = in[2] * how.grad_scale, mixed = how.beta1 * in[1] + (1 - how.beta1) * slope;
    const float sign = mixed > 0 ? 1.0F : mixed < 0 ? -1.0F : 0.0F;
    out[1] = how.beta2 * in[1] + (1 - how.beta2) * slope;
    out[0] = out[2] = in[0] - how.rate * (sign + how.decay * in[0]);
  }
};
struct Descent {
  float rate, keep;
  const float* by;
  __device__ __forceinline__ void operator()(const float (&in)[2], float (&out)[2]) const {
    out[0] = out[1] = keep * in[0] - (by ? rate * *by : rate) * in[1];
  }
};
struct Root {
  float epsilon;
  __device__ __forceinline__ void operator()(const float (&in)[1], float (&out)[1]) const {
    out[0] = sqrtf(in[0]) + epsilon;
  }
};

struct Signs {
  Rows x;
  std::uint8_t* bits;
  const float* size;
  float share;
  std::int64_t bytes;
};

__global__ void __launch_bounds__(256) take_all(Signs job) {
  const std::int64_t byte = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (byte >= job.bytes) return;
  Eight e = read(job.x, 0, byte * 8);
  const float size = *job.size;
  unsigned bits = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const bool up = !(e.x[i] < 0);
    bits |= up ? 128U >> i : 0U;
    e.x[i] -= up ? size : -size;
  }
  write(job.x, 0, byte * 8, e);
  job.bits[byte] = std::uint8_t(bits);
}

__global__ void __launch_bounds__(256) add_all(Signs job) {
  const std::int64_t byte = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (byte >= job.bytes) return;
  Eight e = read(job.x, 0, byte * 8);
  const unsigned bits = job.bits[byte];
  const float size = *job.size / job.share;
#pragma unroll
  for (int i = 0; i < 8; ++i) e.x[i] += bits & 128U >> i ? size : -size;
  write(job.x, 0, byte * 8, e);
}

void run(Queue& queue, const Signs& job, void (*kernel)(Signs)) {
  if (job.bytes > 0) gpu::launch(queue, {(job.bytes + 255) / 256, 256}, kernel, job);
}

}  // namespace

void CudaKernels::adam(const AdamState& state, const Tensor& grad, const AdamArgs& how) {
  run(queue(), Adam{rows_of(state.master), rows_of(state.copy), rows_of(grad), moment_of(state.m, false),
                    moment_of(state.v, true), how, false});
}

void CudaKernels::adam_direction(const AdamState& state, const Tensor& grad, const AdamArgs& how) {
  run(queue(), Adam{rows_of(state.master),
                    {},
                    rows_of(grad),
                    moment_of(state.m, false),
                    moment_of(state.v, true),
                    how,
                    true});
}

void CudaKernels::sgd(const SgdState& state, const Tensor& grad, const SgdArgs& how) {
  const Rows master = rows_of(state.master), momentum = rows_of(state.momentum);
  run_pass<3, 3>(queue(), {master, momentum, rows_of(state.copy)}, {master, momentum, rows_of(grad)},
                 Sgd{how});
}

void CudaKernels::lion(const SgdState& state, const Tensor& grad, const LionArgs& how) {
  const Rows master = rows_of(state.master), momentum = rows_of(state.momentum);
  run_pass<3, 3>(queue(), {master, momentum, rows_of(state.copy)}, {master, momentum, rows_of(grad)},
                 Lion{how});
}

void CudaKernels::descend(const Tensor& master, const Tensor& copied, const Tensor& x,
                          const DescentArgs& how) {
  const Rows weights = rows_of(master);
  run_pass<2, 2>(queue(), {weights, rows_of(copied)}, {weights, rows_of(x)},
                 Descent{how.rate, how.keep, how.by ? elements<float>(how.by) : nullptr});
}

void CudaKernels::root(const Tensor& out, const Tensor& x, float epsilon) {
  run_pass<1, 1>(queue(), {rows_of(out)}, {rows_of(x)}, Root{epsilon});
}

void CudaKernels::take_signs(const Tensor& bits, const Tensor& x, const Tensor& size) {
  run(queue(), {rows_of(x), elements<std::uint8_t>(bits), elements<float>(size), 1, bits.elements()},
      take_all);
}

void CudaKernels::add_signs(const Tensor& out, const Tensor& bits, const Tensor& size, float share) {
  run(queue(), {rows_of(out), elements<std::uint8_t>(bits), elements<float>(size), share, bits.elements()},
      add_all);
}

}  // namespace weft
