// Choosing and ordering rows, for experts.
#include "weft/backend/cuda/any_type.h"
#include "weft/backend/cuda/best.h"
#include "weft/backend/cuda/in_order.h"
#include "weft/backend/cuda/kernels.h"
#include "weft/backend/cuda/reduce.h"

namespace weft {
namespace {

using namespace cuda;

struct TopK {
  Rows x, values, indices;
};

__device__ __forceinline__ float number_at(const Rows& rows, std::int64_t at, float) { return get(rows, at); }
__device__ __forceinline__ double number_at(const Rows& rows, std::int64_t at, double) {
  return get_any(rows, at);
}

// A row a warp. Each round takes the best of those that come after the last one.
template <class Float>
__global__ void __launch_bounds__(256) choose(TopK job) {
  const std::int64_t row = std::int64_t(blockIdx.x) * 8 + threadIdx.x / 32;
  const int lane = int(threadIdx.x) % 32;
  if (row >= job.x.count) return;
  const std::int64_t from = start_of(job.x, row);
  const auto value = [&](int j) { return number_at(job.x, from + j * job.x.step, Float()); };
  Best<Float> last;
  for (std::int64_t k = 0; k < job.values.width; ++k) {
    last = next_best(last, int(job.x.width), value);
    if (lane != 0) continue;
    put_any(job.values, start_of(job.values, row) + k * job.values.step, value(last.at));
    reinterpret_cast<std::int32_t*>(job.indices.data)[start_of(job.indices, row) + k * job.indices.step] =
        last.at;
  }
}

constexpr int block_of_plan = 1024;

struct Plan {
  const std::int32_t* experts;   // of n slots, k a token; negative: dropped
  std::int32_t *slots, *tokens;  // of each row; -1 behind the last
  std::int64_t* offsets;
  std::int64_t n, k, buckets;
  std::int64_t room;  // rows of each expert, 0: as many as chose it
  FaultWord* faults;
};
struct Counted {
  ScratchOf<int> lower;
  Votes<block_of_plan / 32> equal;
};

/// From here to the end there are no rows.
__device__ __forceinline__ void none_from(const Plan& job, std::int64_t from, std::int64_t end) {
  for (std::int64_t i = from + threadIdx.x; i < end; i += block_of_plan) job.tokens[i] = job.slots[i] = -1;
}

// A block an expert: it counts what comes before its rows, then puts their places down in order.
__global__ void __launch_bounds__(block_of_plan) plan(Plan job) {
  auto& tally = gpu::shared<Counted>();
  const std::int64_t mine = blockIdx.x;
  int lower = 0;
  for (std::int64_t i = threadIdx.x; i < job.n; i += block_of_plan) {
    const std::int64_t expert = job.experts[i];
    if (mine == 0 && expert >= job.buckets) *job.faults = fault_of(Index::plan_rows, i, expert);
    lower += expert >= 0 && expert < mine;
  }
  const std::int64_t before = over_block(lower, tally.lower, 0, Plus{});
  const std::int64_t first = job.room > 0 ? mine * job.room : before;
  const std::int64_t end = job.room > 0 ? first + job.room : job.n;
  std::int64_t next = first;
  for (std::int64_t from = 0; from < job.n; from += block_of_plan) {
    const std::int64_t i = from + threadIdx.x;
    const bool yes = i < job.n && job.experts[i] == mine;
    const Ranks ranks = rank(yes, tally.equal);
    const std::int64_t to = next + ranks.before;
    if (yes && to < end) job.slots[to] = std::int32_t(i);
    if (yes && to < end) job.tokens[to] = std::int32_t(i / job.k);
    next += ranks.all;
  }
  const bool last = mine + 1 == job.buckets;
  if (threadIdx.x == 0) job.offsets[mine] = first;
  if (threadIdx.x == 0 && last) job.offsets[job.buckets] = job.room > 0 ? end : next;
  if (last || job.room > 0) none_from(job, next, end);
}

}  // namespace

void CudaKernels::top_k(const Tensor& values, const Tensor& indices, const Tensor& x) {
  const Rows rows = rows_of(x);
  if (rows.count == 0 || values.elements() == 0) return;
  const auto kernel = x.dtype() == Dtype::f64 ? choose<double> : choose<float>;
  gpu::launch(queue(), {(rows.count + 7) / 8, 256}, kernel, TopK{rows, rows_of(values), rows_of(indices)});
}

void CudaKernels::plan_rows(const RowPlan& out, const Tensor& experts, std::int64_t room) {
  const std::int64_t buckets = out.offsets.elements() - 1;
  if (buckets == 0) return;
  const Plan job{elements<std::int32_t>(experts),
                 elements<std::int32_t>(out.slots),
                 elements<std::int32_t>(out.tokens),
                 elements<std::int64_t>(out.offsets),
                 experts.elements(),
                 experts.dim(1),
                 buckets,
                 room,
                 faults()};
  gpu::launch(queue(), {buckets, block_of_plan, sizeof(Counted)}, plan, job);
}

}  // namespace weft
