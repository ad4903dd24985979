// One pass over elements, and copies between all types.
#include "weft/backend/cuda/any_type.h"
#include "weft/backend/cuda/kernels.h"
#include "weft/backend/cuda/pointwise.h"
#include "weft/backend/cuda/runtime.h"

namespace weft {
namespace {

using namespace cuda;

struct Sum {
  __device__ __forceinline__ void operator()(const float (&x)[2], float (&y)[1]) const { y[0] = x[0] + x[1]; }
};
struct Product {
  __device__ __forceinline__ void operator()(const float (&x)[2], float (&y)[1]) const { y[0] = x[0] * x[1]; }
};
struct Scaled {
  float by;
  __device__ __forceinline__ void operator()(const float (&x)[1], float (&y)[1]) const { y[0] = x[0] * by; }
};
struct PlusScaled {
  float by;
  __device__ __forceinline__ void operator()(const float (&x)[2], float (&y)[1]) const {
    y[0] = x[0] + by * x[1];
  }
};

// ---- any type: one element a thread

struct Elements {
  Rows out, in;
  double value;
  std::int64_t total;
};

__global__ void __launch_bounds__(256) fill_all(Elements job) {
  const std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= job.total) return;
  const std::int64_t row = i / job.out.width, column = i - row * job.out.width;
  put_any(job.out, start_of(job.out, row) + column * job.out.step, job.value);
}

__global__ void __launch_bounds__(256) convert_all(Elements job) {
  const std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= job.total) return;
  const std::int64_t row = i / job.out.width, column = i - row * job.out.width;
  const double x = get_any(job.in, start_of(job.in, row) + column * job.in.step);
  put_any(job.out, start_of(job.out, row) + column * job.out.step, x);
}

/// Elements of one size as they are: no bit of an integer or a NaN is lost.
template <class Bits>
__global__ void __launch_bounds__(256) move_all(Elements job) {
  const std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= job.total) return;
  const std::int64_t row = i / job.out.width, column = i - row * job.out.width;
  reinterpret_cast<Bits*>(job.out.data)[start_of(job.out, row) + column * job.out.step] =
      reinterpret_cast<const Bits*>(job.in.data)[start_of(job.in, row) + column * job.in.step];
}

void each_element(Queue& queue, const Elements& job, void (*kernel)(Elements)) {
  if (job.total > 0) gpu::launch(queue, {(job.total + 255) / 256, 256}, kernel, job);
}

/// What CUDA itself does to a run of bytes.
struct Zeros {
  void* at;
  std::size_t bytes;
  void operator()(cudaStream_t stream) const { check(cudaMemsetAsync(at, 0, bytes, stream), "zeros"); }
};
struct Moved {
  void* to;
  const void* from;
  std::size_t bytes;
  void operator()(cudaStream_t stream) const {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream), "a copy");
  }
};

}  // namespace

void CudaKernels::fill(const Tensor& out, double value) {
  if (value == 0 && !std::signbit(value) && out.contiguous() &&
      out.elements() > 0)  // zeros of every type are zero bytes
    return queue().call(nullptr, Zeros{place_of(out), std::size_t(out.bytes())});
  each_element(queue(), {flat(out)[0], {}, value, out.elements()}, fill_all);
}

void CudaKernels::copy(const Tensor& out, const Tensor& in) {
  const auto [to, from] = flat(out, in);
  const Elements job{to, from, 0, out.elements()};
  const std::int64_t size = size_of(out.dtype());
  if (out.dtype() != in.dtype()) {
    if (!is_float(out.dtype()) || !is_float(in.dtype())) return each_element(queue(), job, convert_all);
    return run_pass<1, 1>(queue(), {to}, {from}, Scaled{1});
  }
  if (out.contiguous() && in.contiguous()) {
    if (out.elements() > 0) queue().call(nullptr, Moved{to.data, from.data, std::size_t(out.bytes())});
    return;
  }
  each_element(queue(), job,
               size == 8   ? move_all<std::uint64_t>
               : size == 4 ? move_all<std::uint32_t>
               : size == 2 ? move_all<std::uint16_t>
                           : move_all<std::uint8_t>);
}

void CudaKernels::add(const Tensor& out, const Tensor& a, const Tensor& b) {
  const auto [to, x, y] = flat(out, a, b);
  run_pass<1, 2>(queue(), {to}, {x, y}, Sum{});
}

void CudaKernels::add_scaled(const Tensor& out, const Tensor& x, float alpha) {
  const auto [to, from] = flat(out, x);
  run_pass<1, 2>(queue(), {to}, {to, from}, PlusScaled{alpha});
}

void CudaKernels::scale(const Tensor& x, float alpha) {
  const Rows all = flat(x)[0];
  run_pass<1, 1>(queue(), {all}, {all}, Scaled{alpha});
}

void CudaKernels::multiply(const Tensor& out, const Tensor& a, const Tensor& b) {
  const auto [to, x, y] = flat(out, a, b);
  run_pass<1, 2>(queue(), {to}, {x, y}, Product{});
}

void CudaKernels::add_bias(const Tensor& x, const Tensor& bias) {
  const Rows rows = rows_of(x);
  run_pass<1, 2>(queue(), {rows}, {rows, for_every_row(bias, rows.count)}, Sum{});
}

void CudaKernels::scale_rows(const Tensor& y, const Tensor& x, const Tensor& factor) {
  const Rows rows = rows_of(x);
  run_pass<1, 2>(queue(), {rows_of(y)}, {rows, for_every_column(factor, rows.width)}, Product{});
}

}  // namespace weft
