// What ranks exchanged, added as comm/tree_sum.h adds it: a balanced binary tree in their order, in f32 (f64
// as it is), rounded once. NCCL would round numbers of 16 bits at every rank, and adds others in an order of
// its own.
#include "weft/backend/cuda/any_type.h"
#include "weft/backend/cuda/nccl_lines.h"
#include "weft/backend/cuda/pointwise.h"

namespace weft::cuda {
namespace {

constexpr int threads = 128, deepest = 16;  // 65,536 ranks

struct Parts {
  Rows to, from;  // from: a row a part
  std::int64_t chunks;
  bool largest;
};

template <class Sum>
struct alignas(16) EightOf {
  Sum x[8];
};
/// Sums that wait for what is added to them, of every thread: as many levels as the tree has.
template <class Sum>
struct Waiting {
  EightOf<Sum> of[deepest][threads];
};

__device__ __forceinline__ void take(EightOf<float>& to, const Rows& from, std::int64_t start,
                                     std::int64_t column) {
  const Eight e = read(from, start, column);
#pragma unroll
  for (int i = 0; i < 8; ++i) to.x[i] = e.x[i];
}
__device__ __forceinline__ void take(EightOf<double>& to, const Rows& from, std::int64_t start,
                                     std::int64_t column) {
  read_any(from, start, column, to.x);
}
__device__ __forceinline__ void give(const Rows& to, std::int64_t column, const EightOf<float>& sums) {
  Eight e;
#pragma unroll
  for (int i = 0; i < 8; ++i) e.x[i] = sums.x[i];
  write(to, 0, column, e);
}
__device__ __forceinline__ void give(const Rows& to, std::int64_t column, const EightOf<double>& sums) {
#pragma unroll
  for (int i = 0; i < 8; ++i)
    if (column + i < to.width) put_any(to, column + i, sums.x[i]);
}

/// A NaN must not get lost on the way.
template <class Sum>
__device__ __forceinline__ Sum joined(Sum a, Sum b, bool largest) {
  if (!largest) return a + b;
  return b > a || b != b ? b : a;
}

/// How many sums of the tree over so many parts end with this one, as their second term.
__device__ __forceinline__ int sums_ending_with(int part, int parts) {
  int ending = 0;
  while (parts > 1) {
    const int first = (parts + 1) / 2;
    if (part < first) {
      parts = first;
      ending = 0;
    } else {
      part -= first;
      parts -= first;
      ++ending;
    }
  }
  return ending;
}

template <class Sum>
__global__ void __launch_bounds__(threads) add_parts(Parts job) {
  const std::int64_t chunk = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (chunk >= job.chunks) return;
  const std::int64_t column = chunk * 8;
  auto& waiting = gpu::shared<Waiting<Sum>>().of;
  EightOf<Sum> sums{};
  int level = 0;
  for (int part = 0; part < int(job.from.count); ++part) {
    if (part > 0) waiting[level++][threadIdx.x] = sums;
    take(sums, job.from, start_of(job.from, part), column);
    for (int ending = sums_ending_with(part, int(job.from.count)); ending > 0; --ending) {
      const EightOf<Sum>& first = waiting[--level][threadIdx.x];
#pragma unroll
      for (int i = 0; i < 8; ++i) sums.x[i] = joined(first.x[i], sums.x[i], job.largest);
    }
  }
  give(job.to, column, sums);
}

/// Memory that is no tensor's: rows one behind the other.
Rows rows_at(const void* data, std::int64_t count, const DeviceLine::Reduced& what) {
  Rows out;
  out.data = static_cast<unsigned char*>(const_cast<void*>(data));
  out.count = count;
  out.width = what.count;
  out.step = 1;
  out.sizes[0] = count;
  out.strides[0] = what.count;
  out.rank = count > 1 ? 1 : 0;
  out.dtype = what.dtype;
  out.vector = reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && (count == 1 || what.count % 8 == 0);
  return out;
}

template <class Sum>
void launch(cudaStream_t stream, const Parts& job) {
  std::size_t levels = 0;
  while (std::int64_t(1) << levels < job.from.count) ++levels;
  gpu::launch(stream,
              {(job.chunks + threads - 1) / threads, threads, levels * sizeof(Waiting<Sum>) / deepest},
              add_parts<Sum>, job);
}

}  // namespace

void launch_add_parts(cudaStream_t stream, const DeviceLine::Reduced& what, int parts) {
  const Parts job{rows_at(what.to, 1, what), rows_at(what.from, parts, what), chunks_of(what.count),
                  what.largest};
  if (job.chunks == 0) return;
  what.dtype == Dtype::f64 ? launch<double>(stream, job) : launch<float>(stream, job);
}

}  // namespace weft::cuda
