// Whole tensors to one number: blocks first, then one block over what they found, in an order that follows
// from the shape alone.
#include "weft/backend/cuda/any_type.h"
#include "weft/backend/cuda/kernels.h"
#include "weft/backend/cuda/pointwise.h"
#include "weft/backend/cuda/space.h"

namespace weft {
namespace {

using namespace cuda;

struct SumAll {
  using Value = double;
  __device__ static Value nothing() { return 0; }
  __device__ static Value of(double x, std::int64_t) { return x; }
  __device__ static Value both(Value a, Value b) { return a + b; }
  __device__ static Value last(Value a) { return a; }
};
struct Greatest {
  using Value = double;
  __device__ static Value nothing() { return 0; }
  __device__ static Value of(double x, std::int64_t) { return x < 0 ? -x : x; }
  __device__ static Value both(Value a, Value b) { return isnan(a) || a > b ? a : b; }
  __device__ static Value last(Value a) { return a; }
};
struct FirstNonfinite {
  using Value = std::int64_t;
  static constexpr Value none = std::int64_t(1) << 62;
  __device__ static Value nothing() { return none; }
  __device__ static Value of(double x, std::int64_t i) { return isfinite(x) ? none : i; }
  __device__ static Value both(Value a, Value b) { return a < b ? a : b; }
  __device__ static Value last(Value a) { return a == none ? -1 : a; }
};
struct Zeros {
  using Value = std::int64_t;
  __device__ static Value nothing() { return 0; }
  __device__ static Value of(double x, std::int64_t) { return x == 0; }
  __device__ static Value both(Value a, Value b) { return a + b; }
  __device__ static Value last(Value a) { return a; }
};

constexpr int threads = 256, most_blocks = most_reducing_blocks;

template <class Value>
struct Column {
  Value of[threads];
};

/// The tree over a block; thread 0 has the result.
template <class How>
__device__ __forceinline__ typename How::Value over_threads(typename How::Value x) {
  auto& column = gpu::shared<Column<typename How::Value>>();
  column.of[threadIdx.x] = x;
  for (unsigned half = threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half)
      column.of[threadIdx.x] = How::both(column.of[threadIdx.x], column.of[threadIdx.x + half]);
  }
  return column.of[threadIdx.x];
}

template <class Value>
struct Reduction {
  Rows x;
  std::int64_t chunks, total;
  Value *parts, *out;
  int blocks;
};

// Four blocks at once: with registers for more, some would be spilled.
template <class How>
__global__ void __launch_bounds__(threads, 4) reduce_blocks(Reduction<typename How::Value> job) {
  auto mine = How::nothing();
  for (std::int64_t c = std::int64_t(blockIdx.x) * threads + threadIdx.x; c < job.total;
       c += std::int64_t(job.blocks) * threads) {
    const std::int64_t row = row_of(c, job.chunks, job.total), column = (c - row * job.chunks) * 8;
    double x[8];
    read_any(job.x, start_of(job.x, row), column, x);
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (column + i < job.x.width) mine = How::both(mine, How::of(x[i], row * job.x.width + column + i));
  }
  mine = over_threads<How>(mine);
  if (threadIdx.x == 0) job.parts[blockIdx.x] = mine;
}

template <class How>
__global__ void __launch_bounds__(threads) reduce_parts(Reduction<typename How::Value> job) {
  auto mine = int(threadIdx.x) < job.blocks ? job.parts[threadIdx.x] : How::nothing();
  mine = over_threads<How>(mine);
  if (threadIdx.x == 0) *job.out = How::last(mine);
}

int blocks_for(std::int64_t chunks) {
  const std::int64_t blocks = (chunks + threads - 1) / threads;
  return int(blocks < 1 ? 1 : blocks > most_blocks ? most_blocks : blocks);
}

template <class How>
void reduce(Queue& queue, const Tensor& out, const Tensor& x, const Tensor& parts) {
  using Value = typename How::Value;
  Reduction<Value> job{flat(x)[0], 0, 0, elements<Value>(parts), elements<Value>(out), 0};
  job.chunks = chunks_of(job.x.width);
  job.total = job.chunks * job.x.count;
  job.blocks = blocks_for(job.total);
  const std::size_t shared = sizeof(Column<Value>);
  gpu::launch(queue, {job.blocks, threads, shared}, reduce_blocks<How>, job);
  gpu::launch(queue, {1, threads, shared}, reduce_parts<How>, job);
}

}  // namespace

void CudaKernels::sum(const Tensor& out, const Tensor& x) {
  reduce<SumAll>(queue(), out, x, workspace({most_blocks}, Dtype::f64));
}

void CudaKernels::max_abs(const Tensor& out, const Tensor& x) {
  reduce<Greatest>(queue(), out, x, workspace({most_blocks}, Dtype::f64));
}

void CudaKernels::find_nonfinite(const Tensor& out, const Tensor& x) {
  reduce<FirstNonfinite>(queue(), out, x, workspace({most_blocks}, Dtype::i64));
}

void CudaKernels::count_zeros(const Tensor& out, const Tensor& x) {
  reduce<Zeros>(queue(), out, x, workspace({most_blocks}, Dtype::i64));
}

}  // namespace weft
