// Products without tensor cores: in f32, which those of these GPUs multiply with fewer bits than are
// promised, and in double, which routers may ask for.
//
// A block takes a square of a result, and each thread of 16 x 16 some of its rows and columns. Panels of 16
// of what is summed come to shared memory; a second block computes while one waits for them.
#include "weft/backend/cuda/chained_products.h"

#include "weft/backend/cuda/any_type.h"
#include "weft/backend/cuda/space.h"

namespace weft::cuda {
namespace {

constexpr int depth = 16, threads = 256;

template <class Sum>
constexpr int each = sizeof(Sum) == 4 ? 8 : 4;  // rows and columns of a thread
template <class Sum>
constexpr int width = 16 * each<Sum>;

/// A matrix [rows, columns], or a stack of them, as it is summed: steps along what is summed and across it.
struct Operand {
  Rows rows;
  std::int64_t stack, along, across, size;  // size: of what is not summed
};

struct Product {
  Operand a, b;
  Rows out, bias;
  std::int64_t out_stack, out_stride, k;
  int down, blocks;  // blocks of a column of blocks, and of a matrix
  bool accumulate;
};

template <class Sum>
struct alignas(16) Panel {
  Sum numbers[depth][width<Sum> + 4];
};
template <class Sum>
struct Panels {
  Panel<Sum> a, b;
};

__device__ __forceinline__ float fused(float a, float b, float sum) { return fmaf(a, b, sum); }
__device__ __forceinline__ double fused(double a, double b, double sum) { return fma(a, b, sum); }

/// Operands of sums in f32 are f32, and so are results.
__device__ __forceinline__ void take(const Rows& rows, std::int64_t at, float& to) {
  to = reinterpret_cast<const float*>(rows.data)[at];
}
__device__ __forceinline__ void take(const Rows& rows, std::int64_t at, double& to) {
  to = get_any(rows, at);
}
__device__ __forceinline__ void give(const Rows& rows, std::int64_t at, float x) {
  reinterpret_cast<float*>(rows.data)[at] = x;
}
__device__ __forceinline__ void give(const Rows& rows, std::int64_t at, double x) { put_any(rows, at, x); }

/// What a thread brings of an operand's panels: neighbours bring what lies side by side.
template <class Sum>
class Feed {
 public:
  __device__ __forceinline__ Feed(const Operand& from, std::int64_t matrix, std::int64_t first,
                                  std::int64_t k)
      : from_(&from), left_(int(from.size - first)), deep_(int(k)) {
    const int thread = int(threadIdx.x);
    const bool by_depth = from.across == 1;  // rows lie along what is summed
    depth_ = by_depth ? thread / width<Sum> : thread % depth;
    at_ = by_depth ? thread % width<Sum> : thread / depth;
    depth_step_ = by_depth ? threads / width<Sum> : 0;
    step_ = by_depth ? 0 : threads / depth;
    next_ = matrix * from.stack + (first + at_) * from.across + depth_ * from.along;
  }
  /// The next panel, zeros where the matrix has ended.
  __device__ __forceinline__ void fill(Panel<Sum>& to) {
    Sum held[each<Sum>] = {};  // all are asked for before one is waited for
    std::int64_t at = next_;
#pragma unroll
    for (int i = 0; i < each<Sum>; ++i) {
      if (depth_ + i * depth_step_ < deep_ && at_ + i * step_ < left_) take(from_->rows, at, held[i]);
      at += depth_step_ * from_->along + step_ * from_->across;
    }
#pragma unroll
    for (int i = 0; i < each<Sum>; ++i) to.numbers[depth_ + i * depth_step_][at_ + i * step_] = held[i];
    next_ += depth * from_->along;
    deep_ -= depth;
  }

 private:
  const Operand* from_;
  std::int64_t next_;
  int left_, deep_;  // across and along, from the block's first
  int depth_, at_, depth_step_, step_;
};

/// A thread's i-th row or column of a block: four side by side, so that they are one load.
__device__ __forceinline__ int place_of_thread(int which, int i) { return i / 4 * 64 + which * 4 + i % 4; }
__device__ __forceinline__ void load_line(float (&to)[8], const float* line, int which) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const auto four = gpu::load<float4>(line + half * 64 + which * 4);
    to[4 * half] = four.x;
    to[4 * half + 1] = four.y;
    to[4 * half + 2] = four.z;
    to[4 * half + 3] = four.w;
  }
}
__device__ __forceinline__ void load_line(double (&to)[4], const double* line, int which) {
#pragma unroll
  for (int i = 0; i < 4; ++i) to[i] = line[which * 4 + i];
}

template <class Sum>
using Sums = Sum[each<Sum>][each<Sum>];

template <class Sum>
__device__ __forceinline__ void add_panel(Sums<Sum>& sums, const Panels<Sum>& panels, int deep) {
#pragma unroll 2
  for (int d = 0; d < deep; ++d) {
    Sum a[each<Sum>], b[each<Sum>];
    load_line(a, panels.a.numbers[d], int(threadIdx.x) / 16);
    load_line(b, panels.b.numbers[d], int(threadIdx.x) % 16);
#pragma unroll
    for (int i = 0; i < each<Sum>; ++i)
#pragma unroll
      for (int j = 0; j < each<Sum>; ++j) sums[i][j] = fused(a[i], b[j], sums[i][j]);
  }
}

template <class Sum>
__device__ __forceinline__ void put_sums(const Product& job, const Sums<Sum>& sums, std::int64_t start,
                                         std::int64_t row0, std::int64_t column0) {
#pragma unroll
  for (int i = 0; i < each<Sum>; ++i) {
    const std::int64_t row = row0 + place_of_thread(int(threadIdx.x) / 16, i);
    if (row >= job.a.size) continue;
#pragma unroll
    for (int j = 0; j < each<Sum>; ++j) {
      const std::int64_t column = column0 + place_of_thread(int(threadIdx.x) % 16, j);
      if (column >= job.b.size) continue;
      Sum there = 0, added = 0;
      const std::int64_t at = start + row * job.out_stride + column;
      if (job.accumulate) take(job.out, at, there);
      if (job.bias.data) added = Sum(get_any(job.bias, column * job.bias.step));
      give(job.out, at, there + (sums[i][j] + added));
    }
  }
}

template <class Sum>
__global__ void __launch_bounds__(threads, 2) chain(Product job) {
  auto& panels = gpu::shared<Panels<Sum>>();
  const int matrix = int(blockIdx.x) / job.blocks, place = int(blockIdx.x) - matrix * job.blocks;
  const std::int64_t row = std::int64_t(place % job.down) * width<Sum>,
                     column = std::int64_t(place / job.down) * width<Sum>;
  Feed<Sum> left(job.a, matrix, row, job.k), right(job.b, matrix, column, job.k);
  Sums<Sum> sums = {};
  // A thread whose first row and column lie behind the result has none of it.
  const bool reached = row + place_of_thread(int(threadIdx.x) / 16, 0) < job.a.size &&
                       column + place_of_thread(int(threadIdx.x) % 16, 0) < job.b.size;
  for (std::int64_t k = 0; k < job.k; k += depth) {
    left.fill(panels.a);
    right.fill(panels.b);
    __syncthreads();
    if (reached) add_panel<Sum>(sums, panels, job.k - k < depth ? int(job.k - k) : depth);
    __syncthreads();
  }
  put_sums<Sum>(job, sums, matrix * job.out_stack, row, column);
}

Operand operand(const Tensor& t, bool rows_along) {
  const std::int64_t stack = t.rank() == 3 ? t.stride(0) : 0, stride = t.stride(-2);
  if (rows_along) return {rows_of(t), stack, stride, 1, t.dim(-1)};
  return {rows_of(t), stack, 1, stride, t.dim(-2)};
}

template <class Sum>
void launch(Queue& queue, Product job, std::int64_t matrices) {
  const auto blocks = [](std::int64_t elements) { return int((elements + width<Sum> - 1) / width<Sum>); };
  job.down = blocks(job.a.size);
  job.blocks = job.down * blocks(job.b.size);
  gpu::launch(queue, {matrices * job.blocks, threads, sizeof(Panels<Sum>)}, chain<Sum>, job);
}

}  // namespace

void multiply_in_chains(Queue& queue, const Tensor& out, const Tensor& a, const Tensor& b,
                        const MatmulArgs& how) {
  const Product job{.a = operand(a, how.a == Read::transposed),
                    .b = operand(b, how.b == Read::as_is),
                    .out = rows_of(out),
                    .bias = rows_of(how.bias),
                    .out_stack = out.rank() == 3 ? out.stride(0) : 0,
                    .out_stride = out.stride(-2),
                    .k = depth_of(a, how),
                    .down = 0,
                    .blocks = 0,
                    .accumulate = how.accumulate};
  const std::int64_t matrices = out.rank() == 3 ? out.dim(0) : 1;
  in_doubles(out, a, b) ? launch<double>(queue, job, matrices) : launch<float>(queue, job, matrices);
}

}  // namespace weft::cuda
