// Rotary positions: (x, y) turns to (x cos - y sin, x sin + y cos), back with the other sign of sin.
#include "weft/backend/cuda/kernels.h"
#include "weft/backend/cuda/pointwise.h"

namespace weft {
namespace {

using namespace cuda;

struct Rope {
  Rows first, second;  // by halves; neighbours lie in first alone
  Rows angles;         // [positions, 2 pairs]
  Rows positions;      // [s] or [b, s], as rows of one column
  bool by_row;         // of the batch
  std::int64_t steps, batch, heads, chunks, total;
  float sign;
  FaultWord* faults;
};

/// Where the angles of this row begin, -1 where it has none.
__device__ __forceinline__ std::int64_t angles_of(const Rope& job, std::int64_t row) {
  const std::int64_t at = row / job.heads, step = at / job.batch, b = at - step * job.batch;
  std::int64_t position = step;
  if (job.positions.data) {
    const std::int64_t wanted = start_of(job.positions, job.by_row ? b * job.steps + step : step);
    position = reinterpret_cast<const std::int32_t*>(job.positions.data)[wanted];
  }
  if (position >= 0 && position < job.angles.count) return start_of(job.angles, position);
  *job.faults = fault_of(Index::rope, step, position);
  return -1;
}

/// Elements 2 i of an eight and the next turn by cosine and sine at the same places of another.
__device__ __forceinline__ void turn_neighbours(Eight& x, const Eight& angle, float sign) {
#pragma unroll
  for (int i = 0; i < 8; i += 2) {
    const float a = x.x[i], b = x.x[i + 1], sine = sign * angle.x[i + 1];
    x.x[i] = a * angle.x[i] - b * sine;
    x.x[i + 1] = a * sine + b * angle.x[i];
  }
}

__global__ void __launch_bounds__(256) by_neighbours(Rope job) {
  const std::int64_t chunk = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (chunk >= job.total) return;
  const std::int64_t row = row_of(chunk, job.chunks, job.total), column = (chunk - row * job.chunks) * 8;
  const std::int64_t angles = angles_of(job, row);
  if (angles < 0) return;
  const std::int64_t start = start_of(job.first, row);
  Eight x = read(job.first, start, column);
  turn_neighbours(x, read(job.angles, angles, column), job.sign);
  write(job.first, start, column, x);
}

__global__ void __launch_bounds__(256) by_halves(Rope job) {
  const std::int64_t chunk = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (chunk >= job.total) return;
  const std::int64_t row = row_of(chunk, job.chunks, job.total), column = (chunk - row * job.chunks) * 8;
  const std::int64_t angles = angles_of(job, row);
  if (angles < 0) return;
  const std::int64_t start = start_of(job.first, row), other = start_of(job.second, row);
  Eight x = read(job.first, start, column), y = read(job.second, other, column);
  const Eight low = read(job.angles, angles, 2 * column), high = read(job.angles, angles, 2 * column + 8);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const float cosine = i < 4 ? low.x[2 * i % 8] : high.x[2 * i % 8];
    const float sine = job.sign * (i < 4 ? low.x[2 * i % 8 + 1] : high.x[2 * i % 8 + 1]);
    const float turned = x.x[i] * cosine - y.x[i] * sine;
    y.x[i] = x.x[i] * sine + y.x[i] * cosine;
    x.x[i] = turned;
  }
  write(job.first, start, column, x);
  write(job.second, other, column, y);
}

}  // namespace

void CudaKernels::rope(const Tensor& x, const RopeArgs& how) {
  const std::int64_t pairs = how.angles.dim(1);
  if (x.elements() == 0 || pairs == 0) return;
  const bool halves = how.pairing == Pairing::halves;
  Rope job{};
  job.first = rows_of(x.slice(-1, 0, halves ? pairs : 2 * pairs));
  if (halves) job.second = rows_of(x.slice(-1, pairs, pairs));
  job.angles = rows_of(how.angles.view({how.angles.dim(0), 2 * pairs}));
  job.angles.count = how.angles.dim(0);
  if (how.positions) job.positions = for_every_column(how.positions, 1);
  job.by_row = how.positions && how.positions.rank() == 2;
  job.steps = x.dim(0);
  job.batch = x.dim(1);
  job.heads = job.first.count / (job.steps * job.batch);
  job.chunks = chunks_of(job.first.width);
  job.total = job.chunks * job.first.count;
  job.sign = how.turn == Turn::forward ? 1.0F : -1.0F;
  job.faults = faults();
  gpu::launch(queue(), {(job.total + 255) / 256, 256}, halves ? by_halves : by_neighbours, job);
}

}  // namespace weft
