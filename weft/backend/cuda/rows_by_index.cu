// Rows of a table by index, and back: a row that several indices name is added up by one block, in order, so
// that no number depends on who came first.
#include "weft/backend/cuda/in_order.h"
#include "weft/backend/cuda/kernels.h"
#include "weft/backend/cuda/pointwise.h"

namespace weft {
namespace {

using namespace cuda;

/// Which row of the table an index means.
struct Names {
  const std::int32_t* index;
  std::int64_t first, rows;
  Index which;  // none: what is not held here is nobody's fault
  FaultWord* faults;
  /// -1 for none
  __device__ __forceinline__ std::int64_t operator()(std::int64_t i) const {
    const std::int64_t row = index[i] - first;
    if (row >= rows && which != Index::none) *faults = fault_of(which, i, row);
    return row >= 0 && row < rows ? row : -1;
  }
};

struct Gather {
  Rows out, table;
  Names names;
  std::int64_t chunks, total;
};

__global__ void __launch_bounds__(256) fetch_rows(Gather job) {
  const std::int64_t chunk = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (chunk >= job.total) return;
  const std::int64_t i = row_of(chunk, job.chunks, job.total), column = (chunk - i * job.chunks) * 8;
  const std::int64_t row = job.names(i);
  const Eight e = row < 0 ? Eight{} : read(job.table, start_of(job.table, row), column);
  write(job.out, start_of(job.out, i), column, e);
}

/// out[name of i] += weight[i] x[i]
struct Scatter {
  Rows out, x;
  const float* weight;  // or null
  Names names;
  std::int64_t count, stripes;  // of 2048 columns
};

/// A block looks at so many indices at a time, a thread at eight of them: one behind the other it would wait
/// for each. Index s 256 + t is the t-th thread's s-th.
constexpr int looks = 8, at_once = looks * 256;

struct Found {
  int some[2][8], at[256];
  Votes<8> votes;
};

/// Bits of a thread's eight indices from `from` on, and before end, that name the same row.
__device__ __forceinline__ unsigned same_of_eight(const Scatter& job, std::int64_t from, std::int64_t end,
                                                  std::int32_t mine) {
  unsigned bits = 0;
#pragma unroll
  for (int s = 0; s < looks; ++s) {
    if (from + s * 256 >= end) break;
    const std::int64_t j = from + s * 256 + threadIdx.x;
    if (j < end && job.names.index[j] == mine) bits |= 1U << s;
  }
  return bits;
}

/// Whether it is so for any thread; all call it. Turns alternate, so that none writes what some still read.
__device__ __forceinline__ bool for_any(bool yes, Found& found, int turn) {
  const unsigned votes = __ballot_sync(~0U, yes);
  if (threadIdx.x % 32 == 0) found.some[turn][threadIdx.x / 32] = votes != 0;
  __syncthreads();
  int any = 0;
  for (int warp = 0; warp < 8; ++warp) any |= found.some[turn][warp];
  return any != 0;
}

/// Whether an index before i names the same row.
__device__ __forceinline__ bool named_before(const Scatter& job, std::int64_t i, std::int32_t mine,
                                             Found& found) {
  unsigned bits = 0;
  for (std::int64_t from = 0; from < i && bits == 0; from += at_once)
    bits = same_of_eight(job, from, i, mine);
  return for_any(bits != 0, found, 0);
}

/// Puts the threads that say yes into found.at, in order; returns how many.
__device__ __forceinline__ int line_up(bool yes, Found& found) {
  const Ranks ranks = rank(yes, found.votes);
  if (yes) found.at[ranks.before] = int(threadIdx.x);
  __syncthreads();
  return ranks.all;
}

// A block an index and stripe. The first index that names a row does the work of all that do.
__global__ void __launch_bounds__(256) add_rows(Scatter job) {
  const std::int64_t i = blockIdx.x / job.stripes;
  const std::int64_t column = (blockIdx.x % job.stripes * 256 + threadIdx.x) * 8;
  const std::int64_t row = job.names(i);
  if (row < 0) return;
  auto& found = gpu::shared<Found>();
  const std::int32_t mine = job.names.index[i];
  if (named_before(job, i, mine, found)) return;
  const std::int64_t to = start_of(job.out, row);
  const bool inside = column < job.out.width;
  Eight sum = inside ? read(job.out, to, column) : Eight{};
  int turn = 0;
  for (std::int64_t from = i; from < job.count; from += at_once) {
    const unsigned bits = same_of_eight(job, from, job.count, mine);
    turn ^= 1;
    if (!for_any(bits != 0, found, turn)) continue;
    for (int s = 0; s < looks && from + s * 256 < job.count; ++s) {
      const int here = line_up(bits >> s & 1, found);
      for (int k = 0; k < here; ++k) {
        const std::int64_t j = from + s * 256 + found.at[k];
        const Eight more = inside ? read(job.x, start_of(job.x, j), column) : Eight{};
        const float weight = job.weight ? job.weight[j] : 1;
#pragma unroll
        for (int c = 0; c < 8; ++c) sum.x[c] += weight * more.x[c];
      }
    }
  }
  if (inside) write(job.out, to, column, sum);
}

void fetch(Queue& queue, const Tensor& out, const Tensor& table, const Names& names) {
  Gather job{rows_of(out), rows_of(table), names, chunks_of(out.dim(-1)), 0};
  job.total = job.chunks * job.out.count;
  if (job.total > 0) gpu::launch(queue, {(job.total + 255) / 256, 256}, fetch_rows, job);
}

void scatter(Queue& queue, const Tensor& out, const Tensor& x, const float* weight, const Names& names) {
  Scatter job{rows_of(out), rows_of(x), weight, names, 0, (out.dim(-1) + 2047) / 2048};
  job.count = job.x.count;
  if (job.count == 0 || job.stripes == 0) return;
  gpu::launch(queue, {job.count * job.stripes, 256, sizeof(Found)}, add_rows, job);
}

}  // namespace

void CudaKernels::gather(const Tensor& out, const Tensor& table, const Tensor& ids, std::int64_t first) {
  fetch(queue(), out, table, {elements<std::int32_t>(ids), first, table.dim(0), Index::none, nullptr});
}

void CudaKernels::scatter_add(const Tensor& dtable, const Tensor& dout, const Tensor& ids,
                              std::int64_t first) {
  scatter(queue(), dtable, dout, nullptr,
          {elements<std::int32_t>(ids), first, dtable.dim(0), Index::none, nullptr});
}

void CudaKernels::gather_rows(const Tensor& out, const Tensor& x, const Tensor& index) {
  fetch(queue(), out, x, {elements<std::int32_t>(index), 0, x.dim(0), Index::gather_rows, faults()});
}

void CudaKernels::scatter_add_rows(const Tensor& out, const Tensor& x, const Tensor& index,
                                   const Tensor& weight) {
  scatter(queue(), out, x, elements<float>(weight),
          {elements<std::int32_t>(index), 0, out.dim(0), Index::scatter_add_rows, faults()});
}

}  // namespace weft
