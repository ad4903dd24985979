// The gated delta rule and state spaces by chunks of steps: what its kernels share. A block has one head of
// one sequence, and 32 columns of its memory S [d, d']; columns do not ask for each other. In a chunk that
// begins with S0, where e^x_ij is what is left at step i of what was there behind step j, and e^x_i of what
// was there before the chunk:
//
//   u_i = b_i m_i,  m_i = v_i - e^x_i S0^T k_i - sum over j < i of e^x_ij (k_i k_j) u_j
//   o_i = scale (e^x_i S0^T q_i + sum over j <= i of e^x_ij (q_i k_j) u_j)
//   S = e^x_last S0 + sum over i of e^x_last,i k_i u_i^T
//
// A state space has m_i = v_i, t for b, and skip v_i in o_i.
//
// Each exponent is a sum of its own, so that what is small is no difference of what is large.
#pragma once

#include "weft/backend/cuda/delta_job.h"
#include "weft/backend/cuda/pointwise.h"

namespace weft::cuda {

/// A thread for each pair of steps; warps share out steps, or rows, and a lane has a column.
inline constexpr int delta_threads = delta_chunk * delta_chunk, delta_warps = delta_threads / 32;
static_assert(delta_part == 32 && delta_chunk == 2 * delta_warps);

/// Rows of a part, apart such that lanes meet no bank twice whether they read along or down.
using Columns = float[delta_part + 4];
using Pairs = float[delta_chunk][delta_chunk];

template <int wide, bool corrects_>
struct DeltaChunk {
  static constexpr bool corrects = corrects_;
  using Keys = float[wide + 4];
  Keys q[delta_chunk], k[delta_chunk];
  Columns state[wide];
  Columns v[delta_chunk], said[delta_chunk], asked[delta_chunk];  // said: S0^T k, asked: S0^T q
  Columns missing[delta_chunk];                                   // m, which v is in a state space
  Pairs fade, of_keys, of_queries;  // what is left; times k_i k_j for j < i; times q_i k_j for j <= i
  float log[delta_chunk], rate[delta_chunk];
  float from_start[delta_chunk], to_end[delta_chunk];  // what is left since S0, and what will be at the end

  __device__ __forceinline__ float kept() const { return from_start[delta_chunk - 1]; }
};

__device__ __forceinline__ int lane_here() { return int(threadIdx.x) % 32; }
__device__ __forceinline__ int warp_here() { return int(threadIdx.x) / 32; }

/// Rows of steps from `first` on, columns [column, column + 8 eights); zeros behind the last step and column.
template <class Row>
__device__ __forceinline__ void hold_steps(Row* to, const DeltaJob& job, const Heads& from,
                                           const DeltaPlace& at, const Corner& corner) {
  for (int task = int(threadIdx.x); task < delta_chunk * corner.eights; task += delta_threads) {
    const int i = task / corner.eights, c = (task - i * corner.eights) * 8, step = corner.step + i;
    Eight e{};
    if (step < job.steps) e = read(from.one, from.at(step, at.b, at.g, at.r), corner.column + c);
    gpu::store(&to[i][c], float4{e.x[0], e.x[1], e.x[2], e.x[3]});
    gpu::store(&to[i][c + 4], float4{e.x[4], e.x[5], e.x[6], e.x[7]});
  }
}

/// All of a chunk but what is computed. Steps behind the last change nothing.
template <bool queries, class Chunk>
__device__ __forceinline__ void load_chunk(Chunk& s, const DeltaJob& job, const DeltaPlace& at, int first) {
  const Corner keys{first, 0, job.eights()}, values{first, at.part * delta_part, delta_part / 8};
  hold_steps(s.k, job, job.k, at, keys);
  if (queries) hold_steps(s.q, job, job.q, at, keys);
  hold_steps(Chunk::corrects ? s.v : s.missing, job, job.v, at, values);
  if (threadIdx.x >= delta_chunk) return;
  const int i = int(threadIdx.x), step = first + i;
  const bool inside = step < job.steps;
  const DeltaNumbers is = inside ? numbers_of(job, at, step) : DeltaNumbers{};
  s.log[i] = inside ? is.log() : 0.0F;
  s.rate[i] = inside ? is.rate : 0.0F;
}

template <class Chunk>
__device__ __forceinline__ float left_between(const Chunk& s, int first, int last) {
  float sum = 0;
  for (int l = first; l <= last; ++l) sum += s.log[l];
  return expf(sum);
}

template <class Row>
__device__ __forceinline__ float along(const Row& a, const Row& b, int width) {
  float sum = 0;
#pragma unroll 4
  for (int c = 0; c < width; c += 4) {
    const auto x = gpu::load<float4>(&a[c]), y = gpu::load<float4>(&b[c]);
    sum += x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
  }
  return sum;
}

/// What steps of a chunk have to do with each other; a thread a pair.
template <bool queries, class Chunk>
__device__ __forceinline__ void compare_steps(Chunk& s, int width) {
  const int i = int(threadIdx.x) / delta_chunk, j = int(threadIdx.x) % delta_chunk;
  const float fade = (Chunk::corrects || queries) && j <= i ? left_between(s, j + 1, i) : 0.0F;
  s.fade[i][j] = fade;
  if (Chunk::corrects) s.of_keys[i][j] = j < i ? fade * along(s.k[i], s.k[j], width) : 0.0F;
  if (queries) s.of_queries[i][j] = j <= i ? fade * along(s.q[i], s.k[j], width) : 0.0F;
  if (i == 0) s.from_start[j] = left_between(s, 0, j);
  if (i == 1) s.to_end[j] = left_between(s, j + 1, delta_chunk - 1);
}

/// to = rows matrix, for the two steps of this warp.
template <class Row>
__device__ __forceinline__ void through_matrix(Columns* to, const Row* rows, const Columns* matrix,
                                               int width) {
  const int i = 2 * warp_here(), lane = lane_here();
  float a = 0, b = 0;
#pragma unroll 4
  for (int c = 0; c < width; c += 4) {
    const auto x = gpu::load<float4>(&rows[i][c]), y = gpu::load<float4>(&rows[i + 1][c]);
    const float m[4] = {matrix[c][lane], matrix[c + 1][lane], matrix[c + 2][lane], matrix[c + 3][lane]};
    a += x.x * m[0] + x.y * m[1] + x.z * m[2] + x.w * m[3];
    b += y.x * m[0] + y.y * m[1] + y.z * m[2] + y.w * m[3];
  }
  to[i][lane] = a;
  to[i + 1][lane] = b;
}

/// Each m follows from those before it: a warp, its lanes by themselves.
template <class Chunk>
__device__ __forceinline__ void find_missing(Chunk& s) {
  const int lane = lane_here();
  float x[delta_chunk];
#pragma unroll
  for (int i = 0; i < delta_chunk; ++i) x[i] = s.v[i][lane] - s.from_start[i] * s.said[i][lane];
#pragma unroll
  for (int j = 0; j < delta_chunk; ++j) {
    s.missing[j][lane] = x[j];
    const float u = s.rate[j] * x[j];
#pragma unroll
    for (int i = j + 1; i < delta_chunk; ++i) x[i] -= s.of_keys[i][j] * u;
  }
}

/// Up to m; all that wrote before may write again only behind another barrier.
template <bool queries, class Chunk>
__device__ __forceinline__ void go_through(Chunk& s, const DeltaJob& job, const DeltaPlace& at, int first) {
  __syncthreads();
  load_chunk<queries>(s, job, at, first);
  __syncthreads();
  const int width = job.eights() * 8;
  compare_steps<queries>(s, width);
  if (queries) through_matrix(s.asked, s.q, s.state, width);
  if constexpr (Chunk::corrects) {
    through_matrix(s.said, s.k, s.state, width);
    __syncthreads();
    if (warp_here() == 0) find_missing(s);
  }
  __syncthreads();
}

/// f(row) for the rows of a matrix that a warp writes alone.
template <class F>
__device__ __forceinline__ void each_own_row(int width, F f) {
  for (int row = 4 * warp_here(); row < width; row += 4 * delta_warps)
#pragma unroll
    for (int r = 0; r < 4; ++r) f(row + r);
}
__device__ __forceinline__ void clear_matrix(Columns* matrix, int width) {
  each_own_row(width, [&](int row) { matrix[row][lane_here()] = 0; });
}

/// Between a block's memory and the GPU's: a warp its own rows, four at once.
__device__ __forceinline__ void keep_matrix(float* to, const Columns* matrix, int width) {
  __syncwarp();
  const int c = lane_here() % 8 * 4;
  for (int row = 4 * warp_here() + lane_here() / 8; row < width; row += 4 * delta_warps)
    gpu::store(&to[row * delta_part + c], gpu::load<float4>(&matrix[row][c]));
}
__device__ __forceinline__ void fetch_matrix(Columns* matrix, const float* from, int width) {
  const int c = lane_here() % 8 * 4;
  for (int row = 4 * warp_here() + lane_here() / 8; row < width; row += 4 * delta_warps)
    gpu::store(&matrix[row][c], gpu::load<float4>(&from[row * delta_part + c]));
}

/// matrix = kept matrix + sum over i of rows_i by_i, by a lane's column of it.
template <class Row>
__device__ __forceinline__ void add_to_matrix(Columns* matrix, float kept, const Row* rows,
                                              const float (&by)[delta_chunk], int width) {
  const int lane = lane_here();
  for (int row = 4 * warp_here(); row < width; row += 4 * delta_warps) {
    float sums[4];
#pragma unroll
    for (int r = 0; r < 4; ++r) sums[r] = kept * matrix[row + r][lane];
#pragma unroll
    for (int i = 0; i < delta_chunk; ++i) {
      const auto x = gpu::load<float4>(&rows[i][row]);
      sums[0] += x.x * by[i];
      sums[1] += x.y * by[i];
      sums[2] += x.z * by[i];
      sums[3] += x.w * by[i];
    }
#pragma unroll
    for (int r = 0; r < 4; ++r) matrix[row + r][lane] = sums[r];
  }
}

/// From S0 to S.
template <class Chunk>
__device__ __forceinline__ void move_state(Chunk& s, const DeltaJob& job) {
  float by[delta_chunk];
#pragma unroll
  for (int i = 0; i < delta_chunk; ++i) by[i] = s.to_end[i] * s.rate[i] * s.missing[i][lane_here()];
  add_to_matrix(s.state, s.kept(), s.k, by, job.eights() * 8);
}

}  // namespace weft::cuda
