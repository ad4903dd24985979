// What ranks exchanged, added in their order in f32 and rounded once, however many there are: NCCL would
// round numbers of 16 bits at every rank.
#include "weft/backend/cuda/nccl_lines.h"
#include "weft/backend/cuda/pointwise.h"

namespace weft::cuda {
namespace {

struct Parts {
  Rows to, from;  // from: a row a part
  std::int64_t chunks;
  bool largest;
};

/// A NaN must not get lost on the way.
__device__ __forceinline__ float joined(float a, float b, bool largest) {
  if (!largest) return a + b;
  return b > a || b != b ? b : a;
}

__global__ void __launch_bounds__(256) add_parts(Parts job) {
  const std::int64_t chunk = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (chunk >= job.chunks) return;
  const std::int64_t column = chunk * 8;
  Eight out = read(job.from, 0, column);
  for (std::int64_t part = 1; part < job.from.count; ++part) {
    const Eight next = read(job.from, start_of(job.from, part), column);
#pragma unroll
    for (int i = 0; i < 8; ++i) out.x[i] = joined(out.x[i], next.x[i], job.largest);
  }
  write(job.to, 0, column, out);
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

}  // namespace

void launch_add_parts(cudaStream_t stream, const DeviceLine::Reduced& what, int parts) {
  const Parts job{rows_at(what.to, 1, what), rows_at(what.from, parts, what), chunks_of(what.count),
                  what.largest};
  if (job.chunks > 0) gpu::launch(stream, {(job.chunks + 255) / 256, 256}, add_parts, job);
}

}  // namespace weft::cuda
