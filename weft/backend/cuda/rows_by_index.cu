// Rows of a table by index, and back: a row that several indices name is added up by one block, in order, so
// that no number depends on who came first.
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
  const std::int64_t i = chunk / job.chunks, column = (chunk - i * job.chunks) * 8;
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

struct Found {
  int earlier[8], count[8], at[256];
};

/// Whether an index before i names the same row; all threads call it, and get the same answer.
__device__ __forceinline__ bool named_before(const Scatter& job, std::int64_t i, std::int32_t mine,
                                             Found& found) {
  bool yes = false;
  for (std::int64_t j = threadIdx.x; j < i && !yes; j += blockDim.x) yes = job.names.index[j] == mine;
  const unsigned votes = __ballot_sync(~0U, yes);
  if (threadIdx.x % 32 == 0) found.earlier[threadIdx.x / 32] = votes != 0;
  __syncthreads();
  int any = 0;
  for (int warp = 0; warp < 8; ++warp) any |= found.earlier[warp];
  return any != 0;
}

/// Of the indices [from, from + 256), those that name the same row, in order; returns how many.
__device__ __forceinline__ int same_here(const Scatter& job, std::int64_t from, std::int32_t mine,
                                         Found& found) {
  const std::int64_t j = from + threadIdx.x;
  const bool yes = j < job.count && job.names.index[j] == mine;
  const unsigned votes = __ballot_sync(~0U, yes), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  __syncthreads();
  if (lane == 0) found.count[warp] = __popc(votes);
  __syncthreads();
  int before = 0, all = 0;
  for (unsigned w = 0; w < 8; ++w) {
    if (w == warp) before = all;
    all += found.count[w];
  }
  if (yes) found.at[before + __popc(votes & ((1U << lane) - 1))] = int(threadIdx.x);
  __syncthreads();
  return all;
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
  for (std::int64_t from = i; from < job.count; from += 256) {
    const int here = same_here(job, from, mine, found);
    for (int k = 0; k < here; ++k) {
      const std::int64_t j = from + found.at[k];
      const Eight more = inside ? read(job.x, start_of(job.x, j), column) : Eight{};
      const float weight = job.weight ? job.weight[j] : 1;
#pragma unroll
      for (int c = 0; c < 8; ++c) sum.x[c] += weight * more.x[c];
    }
  }
  if (inside) write(job.out, to, column, sum);
}

void fetch(cudaStream_t stream, const Tensor& out, const Tensor& table, const Names& names) {
  Gather job{rows_of(out), rows_of(table), names, chunks_of(out.dim(-1)), 0};
  job.total = job.chunks * job.out.count;
  if (job.total > 0) gpu::launch(stream, {(job.total + 255) / 256, 256}, fetch_rows, job);
}

void scatter(cudaStream_t stream, const Tensor& out, const Tensor& x, const float* weight,
             const Names& names) {
  Scatter job{rows_of(out), rows_of(x), weight, names, 0, (out.dim(-1) + 2047) / 2048};
  job.count = job.x.count;
  if (job.count == 0 || job.stripes == 0) return;
  gpu::launch(stream, {job.count * job.stripes, 256, sizeof(Found)}, add_rows, job);
}

}  // namespace

void CudaKernels::gather(const Tensor& out, const Tensor& table, const Tensor& ids, std::int64_t first) {
  fetch(stream(), out, table, {elements<std::int32_t>(ids), first, table.dim(0), Index::none, nullptr});
}

void CudaKernels::scatter_add(const Tensor& dtable, const Tensor& dout, const Tensor& ids,
                              std::int64_t first) {
  scatter(stream(), dtable, dout, nullptr,
          {elements<std::int32_t>(ids), first, dtable.dim(0), Index::none, nullptr});
}

void CudaKernels::gather_rows(const Tensor& out, const Tensor& x, const Tensor& index) {
  fetch(stream(), out, x, {elements<std::int32_t>(index), 0, x.dim(0), Index::gather_rows, faults()});
}

void CudaKernels::scatter_add_rows(const Tensor& out, const Tensor& x, const Tensor& index,
                                   const Tensor& weight) {
  scatter(stream(), out, x, elements<float>(weight),
          {elements<std::int32_t>(index), 0, out.dim(0), Index::scatter_add_rows, faults()});
}

}  // namespace weft
