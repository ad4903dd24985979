// Products without tensor cores: in f32, which those of these GPUs multiply with fewer bits than are
// promised, and in double, which routers may ask for.
//
// A block takes a square of a result, and each thread of 16 x 16 some of its rows and columns. Panels of 16
// of what is summed come to shared memory; a second block computes while one waits for them. Of groups all
// are one launch, and a block finds its own as those of small floats do.
#include "weft/backend/cuda/chained_products.h"

#include "weft/backend/cuda/any_type.h"
#include "weft/backend/cuda/grouped_products.h"
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

  __device__ __forceinline__ std::int64_t start(std::int64_t matrix, std::int64_t first) const {
    return matrix * stack + first * across;
  }
};

struct Product {
  PanelResult out;
  Operand a, b;
  std::int64_t k;
  int down, blocks;  // blocks of a column of blocks, and of a matrix
};

/// As GroupedProduct has them.
struct ChainedGroups {
  PanelResult out;
  Operand a, b;
  std::int64_t m, k;
  const std::int64_t* offsets;
  std::int64_t groups;
};

template <class Sum>
struct alignas(16) Strip {
  Sum numbers[depth][width<Sum> + 4];
};
template <class Sum>
struct Strips {
  Strip<Sum> a, b;
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
  /// From an element on, so many rows or columns and so much of what is summed.
  __device__ __forceinline__ Feed(const Operand& from, std::int64_t start, std::int64_t left, std::int64_t k)
      : from_(&from), left_(int(left)), deep_(int(k)) {
    const int thread = int(threadIdx.x);
    const bool by_depth = from.across == 1;  // rows lie along what is summed
    depth_ = by_depth ? thread / width<Sum> : thread % depth;
    at_ = by_depth ? thread % width<Sum> : thread / depth;
    depth_step_ = by_depth ? threads / width<Sum> : 0;
    step_ = by_depth ? 0 : threads / depth;
    next_ = start + at_ * from.across + depth_ * from.along;
  }
  /// The next panel's, zeros where the matrix has ended. All are asked for before one is waited for.
  __device__ __forceinline__ void ask(Sum (&held)[each<Sum>]) {
    std::int64_t at = next_;
#pragma unroll
    for (int i = 0; i < each<Sum>; ++i) {
      held[i] = 0;
      if (depth_ + i * depth_step_ < deep_ && at_ + i * step_ < left_) take(from_->rows, at, held[i]);
      at += depth_step_ * from_->along + step_ * from_->across;
    }
    next_ += depth * from_->along;
    deep_ -= depth;
  }
  __device__ __forceinline__ void put(Strip<Sum>& to, const Sum (&held)[each<Sum>]) const {
#pragma unroll
    for (int i = 0; i < each<Sum>; ++i) to.numbers[depth_ + i * depth_step_][at_ + i * step_] = held[i];
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
__device__ __forceinline__ void add_panel(Sums<Sum>& sums, const Strips<Sum>& panels, int deep) {
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
__device__ __forceinline__ void add_panels(Sums<Sum>& sums, Feed<Sum>& left, Feed<Sum>& right,
                                           const PanelExtent& have) {
  auto& panels = gpu::shared<Strips<Sum>>();
  // A thread whose first row and column lie behind the result has none of it.
  const bool reached = place_of_thread(int(threadIdx.x) / 16, 0) < have.rows &&
                       place_of_thread(int(threadIdx.x) % 16, 0) < have.columns;
  for (std::int64_t k = 0; k < have.depth; k += depth) {
    Sum a[each<Sum>], b[each<Sum>];
    left.ask(a);
    right.ask(b);
    left.put(panels.a, a);
    right.put(panels.b, b);
    __syncthreads();
    if (reached) add_panel<Sum>(sums, panels, have.depth - k < depth ? int(have.depth - k) : depth);
    __syncthreads();
  }
}

template <class Sum>
__device__ __forceinline__ void put_sums(const PanelResult& to, const Sums<Sum>& sums,
                                         const PanelPlace& place) {
#pragma unroll
  for (int i = 0; i < each<Sum>; ++i) {
    const int row = place_of_thread(int(threadIdx.x) / 16, i);
    if (row >= place.rows) continue;
#pragma unroll
    for (int j = 0; j < each<Sum>; ++j) {
      const std::int64_t column = place.column + place_of_thread(int(threadIdx.x) % 16, j);
      if (column >= to.width) continue;
      Sum there = 0, added = 0;
      const std::int64_t at = place.start + row * to.stride + column;
      if (to.accumulate) take(to.rows, at, there);
      if (to.bias.data) added = Sum(get_any(to.bias, place.bias + column * to.bias.step));
      give(to.rows, at, there + (sums[i][j] + added));
    }
  }
}

template <class Sum>
__global__ void __launch_bounds__(threads, 2) chain(Product job) {
  const int matrix = int(blockIdx.x) / job.blocks, place = int(blockIdx.x) - matrix * job.blocks;
  const std::int64_t row = std::int64_t(place % job.down) * width<Sum>,
                     column = std::int64_t(place / job.down) * width<Sum>;
  const PanelExtent have{job.a.size - row, job.b.size - column, job.k};
  Feed<Sum> left(job.a, job.a.start(matrix, row), have.rows, have.depth),
      right(job.b, job.b.start(matrix, column), have.columns, have.depth);
  Sums<Sum> sums = {};
  add_panels<Sum>(sums, left, right, have);
  put_sums<Sum>(job.out, sums,
                {.start = matrix * job.out.stack + row * job.out.stride,
                 .bias = 0,
                 .column = column,
                 .rows = have.rows});
}

struct ByThreads {
  static constexpr int rows = width<float>, columns = width<float>, threads = cuda::threads;
};

// An element is the chain that it is in a product of its group alone.
template <bool gradient>
__global__ void __launch_bounds__(threads, 2) chain_groups(ChainedGroups job) {
  const Spot spot = gradient ? spot_of_gradient<ByThreads>(job) : spot_of_rows<ByThreads>(job);
  if (spot.group < 0) return;
  if (!gradient && spot.group == job.groups) return put_zeros<ByThreads>(job.out, spot);
  const std::int64_t count = spot.end - spot.first, row0 = (gradient ? 0 : spot.first) + spot.row;
  if (gradient && count == 0 && job.out.accumulate) return;
  const PanelExtent have{(gradient ? job.m : count) - spot.row, job.out.width - spot.column,
                         gradient ? count : job.k};
  const std::int64_t summed = gradient ? spot.first : 0;  // rows of both operands before the group's
  Feed<float> left(job.a, job.a.start(0, row0) + summed * job.a.along, have.rows, have.depth),
      right(job.b, job.b.start(gradient ? 0 : spot.group, spot.column) + summed * job.b.along, have.columns,
            have.depth);
  Sums<float> sums = {};
  add_panels<float>(sums, left, right, have);
  put_sums<float>(job.out, sums,
                  {.start = (gradient ? spot.group * job.out.stack : 0) + row0 * job.out.stride,
                   .bias = job.out.bias.data ? start_of(job.out.bias, spot.group) : 0,
                   .column = spot.column,
                   .rows = have.rows});
}

Operand operand(const Tensor& t, bool rows_along) {
  const std::int64_t stack = t.rank() == 3 ? t.stride(0) : 0, stride = t.stride(-2);
  if (rows_along) return {rows_of(t), stack, stride, 1, t.dim(-1)};
  return {rows_of(t), stack, 1, stride, t.dim(-2)};
}

template <class Sum>
void launch(Queue& queue, Product job, std::int64_t matrices) {
  job.down = blocks_of(job.a.size, width<Sum>);
  job.blocks = job.down * blocks_of(job.b.size, width<Sum>);
  gpu::launch(queue, {matrices * job.blocks, threads, sizeof(Strips<Sum>)}, chain<Sum>, job);
}

}  // namespace

void multiply_in_chains(Queue& queue, const Tensor& out, const Tensor& a, const Tensor& b,
                        const MatmulArgs& how) {
  const Product job{.out = panel_result(out, how),
                    .a = operand(a, how.a == Read::transposed),
                    .b = operand(b, how.b == Read::as_is),
                    .k = depth_of(a, how),
                    .down = 0,
                    .blocks = 0};
  const std::int64_t matrices = out.rank() == 3 ? out.dim(0) : 1;
  in_doubles(out, a, b) ? launch<double>(queue, job, matrices) : launch<float>(queue, job, matrices);
}

void multiply_groups_in_chains(Queue& queue, const Tensor& out, const Tensor& a, const Tensor& b,
                               const ChainsByGroup& how) {
  const bool gradient = how.product.a == Read::transposed;
  const ChainedGroups job{.out = panel_result(out, how.product),
                          .a = operand(a, gradient),
                          .b = operand(b, how.product.b == Read::as_is),
                          .m = out.dim(-2),
                          .k = gradient ? 0 : a.dim(1),
                          .offsets = elements<std::int64_t>(how.offsets),
                          .groups = how.offsets.dim(0) - 1};
  gpu::launch(queue, {blocks_in_groups<ByThreads>(job, gradient), threads, sizeof(Strips<float>)},
              gradient ? chain_groups<true> : chain_groups<false>, job);
}

}  // namespace weft::cuda
