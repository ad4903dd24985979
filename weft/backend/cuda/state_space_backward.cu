// State spaces backward in bf16, by tensor cores (state_tiles.h): chunks of a segment from the last to the
// first, with the slope T of the memory behind each. S0 is the memory before a chunk; with what
// state_space.cu says,
//
//   P_ij = scale e^x_ij (q_i k_j),  dP_ij = scale e^x_ij t_j (do_i v_j)
//   dq_i = scale e^x_i S0 do_i + sum over j <= i of dP_ij k_j
//   dk_j = e^x_last,j t_j T v_j + sum over i >= j of dP_ij q_i
//   w_j = e^x_last,j T^T k_j + sum over i >= j of P_ij do_i
//   dv_j = t_j w_j + skip do_j,  dt_j = w_j v_j,  T before = e^x_last T + sum over i of e^x_i scale q_i
//   do_i^T
//
// An exponent's slope is what it multiplied times that one's slope. A pair's is counted where it is left
// behind and taken away where it is reached, so what steps pass on to those behind them is a sum along steps.
#include <algorithm>

#include "weft/backend/cuda/delta_slopes.h"
#include "weft/backend/cuda/reduce.h"
#include "weft/backend/cuda/state_tiles.h"

namespace weft::cuda {
namespace {

/// A chunk as both kernels have it.
template <int d>
struct ChunkOf {
  Tile<d> q, k;
  Narrow<scan_chunk> v, dout;
  DeltaPlace at;  // here, since threads would keep all that follows from it in registers
  ChunkNumbers numbers;
};
template <int d>
struct OfQueries : ChunkOf<d> {
  Split<d> memory;
  float since_start[scan_chunk], reached[scan_chunk];  // slopes of exponents from S0 on, and from other steps
};
template <int d>
struct OfKeys : ChunkOf<d> {
  Split<d> slope;
  Split<scan_chunk> written;
  float held[d * delta_part];  // the slope as it is: threads have no registers for it all the time
  float passed[scan_chunk];    // slopes of exponents to other steps and to the end
  float time[scan_chunk], skip[scan_chunk];  // slopes of t and of the skip
  float whole[scan_threads / 32];            // of the exponent over all steps, a warp's share
};

/// acc [16, 64] += a b^T, of 32 columns and rows [from, from + 64) of b.
template <int rows>
__device__ __forceinline__ void add_by_parts(float (&acc)[8][4], const std::uint32_t (&a)[2][4],
                                             Narrow<rows>& b, int from = 0) {
  const int lane = int(threadIdx.x) % 32;
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    std::uint32_t right[4];
    gpu::load_matrices(right, b.piece(from + 8 * n + lane % 8, lane / 8));
    gpu::multiply<bf16>(acc[n], a[0], right[0], right[1]);
    gpu::multiply<bf16>(acc[n], a[1], right[2], right[3]);
  }
}
struct LeftPart {
  std::uint32_t of[2][4];
};
__device__ __forceinline__ LeftPart left_part(Narrow<scan_chunk>& from, int row0) {
  const int lane = int(threadIdx.x) % 32;
  LeftPart out;
#pragma unroll
  for (int k = 0; k < 2; ++k) gpu::load_matrices(out.of[k], from.piece(row0 + lane % 16, 2 * k + lane / 16));
  return out;
}

/// Channels are taken 64 at once, since threads have registers for no more: a panel of a tile.
/// o [16, 64] += p [16, 64] b
template <int d>
__device__ __forceinline__ void add_by_rows(float (&o)[8][4], const float (&p)[8][4], Tile<d>& b, int panel) {
  const int lane = int(threadIdx.x) % 32;
#pragma unroll
  for (int k = 0; k < scan_chunk / 16; ++k) {
    const SplitRows left = split_rows(p, k);
#pragma unroll
    for (int n = 0; n < 8; n += 2) {
      std::uint32_t right[4];
      gpu::load_matrices<true>(right, b.piece(16 * k + lane % 16, 8 * panel + n + lane / 16));
      gpu::multiply<bf16>(o[n], left.high, right[0], right[1]);
      gpu::multiply<bf16>(o[n + 1], left.high, right[2], right[3]);
      gpu::multiply<bf16>(o[n], left.low, right[0], right[1]);
      gpu::multiply<bf16>(o[n + 1], left.low, right[2], right[3]);
    }
  }
}

/// A thread's share of two rows, lane / 4 and 8 behind it.
using TwoRows = float[2];
__device__ __forceinline__ void put_rows(float* to, int row0, const TwoRows& shares) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float sum = shares[h];
    sum += __shfl_xor_sync(~0U, sum, 1);
    sum += __shfl_xor_sync(~0U, sum, 2);
    if (threadIdx.x % 4 == 0) to[row0 + fragment_row(2 * h)] = sum;
  }
}

/// A gradient of rows of a tile: what they have through a memory, each row times its factor; what they have
/// of other steps of the chunk; and where it goes.
template <int d>
struct Gradient {
  LeftPart through;
  Split<d>& memory;
  TwoRows factors;
  Tile<d>&own, &others;
  float* lines;
};
/// p: of the chunk's steps. To sums goes the product of what is had through the memory with the rows
/// themselves.
template <int d>
__device__ __forceinline__ void put_gradient(const DeltaBackward& job, const OwnSteps& own,
                                             const Gradient<d>& of, const float (&p)[8][4], TwoRows& sums) {
#pragma unroll 1
  for (int panel = 0; panel < d / 64; ++panel) {
    float x[8][4] = {};
    add_by_parts(x, of.through.of, of.memory.high, 64 * panel);
    add_by_parts(x, of.through.of, of.memory.low, 64 * panel);
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; i += 2) {
        const auto pair = gpu::load<std::uint32_t>(of.own.piece(own.row0 + fragment_row(i), 8 * panel + n) +
                                                   fragment_column(0, 0));
        x[n][i] *= of.factors[i / 2];
        x[n][i + 1] *= of.factors[i / 2];
        sums[i / 2] += x[n][i] * gpu::low<bf16>(pair) + x[n][i + 1] * gpu::high<bf16>(pair);
      }
    add_by_rows<d>(x, p, of.others, panel);
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const int step = own.first + own.row0 + fragment_row(i);
      if (step >= job.is.steps) continue;
      float* const to = of.lines + job.line(own.at, step) + 64 * panel;
#pragma unroll
      for (int n = 0; n < 8; ++n)
        if (64 * panel + 8 * n < job.is.d)
          gpu::store(to + fragment_column(n, 0), float2{x[n][i], x[n][i + 1]});
    }
  }
}

/// dq of this warp's steps, and what their exponents owe.
template <int d>
__device__ __forceinline__ void of_queries(OfQueries<d>& s, const DeltaBackward& job, const OwnSteps& own) {
  const ChunkNumbers& is = s.numbers;
  const int row0 = own.row0;
  const LeftPart dout = left_part(s.dout, row0);
  float dp[8][4] = {}, p[8][4];
  add_by_parts(dp, dout.of, s.v);
  rows_by_rows<bf16>(p, s.q, row0, s.k, 0);
  TwoRows reached = {};
#pragma unroll
  for (int n = 0; n < 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = row0 + fragment_row(i), column = fragment_column(n, i);
      dp[n][i] *= column <= row ? job.is.scale * is.between(column, row) * is.time[column] : 0.0F;
      if (column < row) reached[i / 2] += dp[n][i] * p[n][i];
    }
  put_rows(s.reached, row0, reached);
  TwoRows since_start = {};
  const Gradient<d> of{dout,
                       s.memory,
                       {job.is.scale * is.from_start(row0 + fragment_row(0)),
                        job.is.scale * is.from_start(row0 + fragment_row(2))},
                       s.q,
                       s.k,
                       job.dq};
  put_gradient(job, own, of, dp, since_start);
  put_rows(s.since_start, row0, since_start);
}

__device__ __forceinline__ void put_values(const DeltaBackward& job, const OwnSteps& own, const PartRows& w,
                                           const float* time, Narrow<scan_chunk>& dout) {
  const DeltaPlace& at = own.at;
  const float skip = job.is.skip[at.g * job.is.heads + at.r];
#pragma unroll
  for (int n = 0; n < 4; ++n)
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const int row = own.row0 + fragment_row(i), step = own.first + row, within = fragment_column(n, 0),
                column = at.part * delta_part + within;
      if (step >= job.is.steps || column >= job.dv.one.width) continue;
      const auto above = gpu::load<std::uint32_t>(dout.pair(row, within));
      put_pair(job.dv.one, job.dv.at(step, at.b, at.g, at.r) + column,
               time[row] * w[n][i] + skip * gpu::low<bf16>(above),
               time[row] * w[n][i + 1] + skip * gpu::high<bf16>(above));
    }
}

/// dv and the slopes of t and the skip; p is P turned.
template <int d>
__device__ __forceinline__ void of_values(OfKeys<d>& s, const DeltaBackward& job, const OwnSteps& own,
                                          const float (&p)[8][4]) {
  const int row0 = own.row0;
  PartRows w = {};
  through_memory<d>(w, s.k, row0, s.slope);
  TwoRows time = {}, skip = {};
#pragma unroll
  for (int n = 0; n < 4; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) w[n][i] *= s.numbers.to_end(row0 + fragment_row(i));
  add_by_steps(w, p, s.dout);
#pragma unroll
  for (int n = 0; n < 4; ++n)
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const int row = row0 + fragment_row(i), column = fragment_column(n, 0);
      const auto v = gpu::load<std::uint32_t>(s.v.pair(row, column)),
                 above = gpu::load<std::uint32_t>(s.dout.pair(row, column));
      const float x = gpu::low<bf16>(v), y = gpu::high<bf16>(v);
      time[i / 2] += w[n][i] * x + w[n][i + 1] * y;
      skip[i / 2] += gpu::low<bf16>(above) * x + gpu::high<bf16>(above) * y;
    }
  put_rows(s.time, row0, time);
  put_rows(s.skip, row0, skip);
  put_values(job, own, w, s.numbers.time, s.dout);
}

/// dk and dv of this warp's steps, and what they leave to those behind them. Everything is turned: rows are
/// keys, columns queries.
template <int d>
__device__ __forceinline__ void of_keys(OfKeys<d>& s, const DeltaBackward& job, const OwnSteps& own) {
  const ChunkNumbers& is = s.numbers;
  const int row0 = own.row0;
  const LeftPart v = left_part(s.v, row0);
  float dp[8][4] = {}, p[8][4];
  add_by_parts(dp, v.of, s.dout);
  rows_by_rows<bf16>(p, s.k, row0, s.q, 0);
  TwoRows passed = {};
#pragma unroll
  for (int n = 0; n < 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = row0 + fragment_row(i), column = fragment_column(n, i);
      const float left = column >= row ? job.is.scale * is.between(row, column) : 0.0F;
      dp[n][i] *= left * is.time[row];
      if (column > row) passed[i / 2] += dp[n][i] * p[n][i];
      p[n][i] *= left;
    }
  of_values(s, job, own, p);
  const int rows[2] = {row0 + fragment_row(0), row0 + fragment_row(2)};
  const Gradient<d> of{
      v,   s.slope, {is.to_end(rows[0]) * is.time[rows[0]], is.to_end(rows[1]) * is.time[rows[1]]},
      s.k, s.q,     job.dk};
  put_gradient(job, own, of, dp, passed);
  put_rows(s.passed, row0, passed);
}

/// A chunk's operands, on their way.
template <int d>
__device__ __forceinline__ void fetch_chunk(ChunkOf<d>& s, const DeltaBackward& job, int first) {
  const DeltaPlace& at = s.at;
  const Stretch steps{first, job.is.steps, at.b, at.g, at.r};
  fetch(s.q, job.is.q, steps);
  fetch(s.k, job.is.k, steps);
  fetch_part(s.v, job.is.v, steps, at.part * delta_part);
  fetch_part(s.dout, job.is.o, steps, at.part * delta_part);
  gpu::commit_copies();
}
template <int d>
__device__ __forceinline__ void wait_for_chunk(ChunkOf<d>& s, const DeltaBackward& job, int first) {
  if (threadIdx.x < 32)
    find_numbers(s.numbers, numbers_of_head(job.is, s.at), ask_decays(job.is, s.at, first),
                 job.is.steps - first);
  gpu::wait_copies<0>();
  __syncthreads();
}
/// The place of the memory before a chunk.
__device__ __forceinline__ OneOf chunk_of(const DeltaBackward& job, int first) {
  return {int(blockIdx.x), (first - job.first()) / scan_chunk, job.chunks};
}

/// A chunk, of all of a segment's at once, since none asks for another.
template <int d>
__global__ void __launch_bounds__(scan_threads, 2) scan_queries(DeltaBackward job) {
  auto& s = gpu::shared<OfQueries<d>>();
  const int block = int(blockIdx.x) / job.chunks, chunk = int(blockIdx.x) - block * job.chunks;
  if (threadIdx.x == 0) s.at = delta_place(job.is, block);
  __syncthreads();
  const OwnSteps own{s.at, job.first() + chunk * scan_chunk, int(threadIdx.x) / 32 * 16};
  fetch_chunk(s, job, own.first);
  OwnMemory<d> memory;
  fetch_memory<d>(memory, job.states, {block, chunk, job.chunks});
  show_memory<d>(s.memory, memory);
  wait_for_chunk(s, job, own.first);
  of_queries(s, job, own);
  __syncthreads();
  const int l = int(threadIdx.x);
  if (l >= scan_chunk || own.first + l >= job.is.steps) return;
  float sum = 0;
  for (int i = 0; i < scan_chunk; ++i) sum += i < l ? -s.reached[i] : s.since_start[i];
  job.dlog[job.number(own.at, own.first + l)] = sum;
}

/// The slopes of t and of the skip, of this thread's step, and what is left of that of log a.
template <int d>
__device__ __forceinline__ void put_numbers(const OfKeys<d>& s, const DeltaBackward& job, int first) {
  const int l = int(threadIdx.x);
  if (l >= scan_chunk || first + l >= job.is.steps) return;
  float sum = 0;
  for (const float share : s.whole) sum += share;
  sum *= s.numbers.kept();
  for (int i = 0; i < l; ++i) sum += s.passed[i];
  const std::int64_t to = job.number(s.at, first + l);
  job.dlog[to] += sum;
  job.drate[to] = s.time[l];
  job.dskip[to] = s.skip[l];
}

/// The slope behind a chunk, and what it has of the memory before it.
template <int d>
__device__ __forceinline__ void show_slope(OfKeys<d>& s, const DeltaBackward& job, int first) {
  OwnMemory<d> memory, slope;
  fetch_memory<d>(memory, job.states, chunk_of(job, first));
  fetch_memory<d>(slope, s.held, {0, 0, 1});
  show_memory<d>(s.slope, slope);
  float whole = 0;
#pragma unroll
  for (int m = 0; m < d / 64; ++m)
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) whole += memory[m][n][i] * slope[m][n][i];
  whole = over_warp(whole, Plus{});
  if (threadIdx.x % 32 == 0) s.whole[threadIdx.x / 32] = whole;
}

template <int d>
__global__ void __launch_bounds__(scan_threads, 2) scan_keys(DeltaBackward job) {
  auto& s = gpu::shared<OfKeys<d>>();
  if (threadIdx.x == 0) s.at = delta_place(job.is, int(blockIdx.x));
  __syncthreads();
  const int between = job.is.segments - 1;  // segments
  OwnMemory<d> slope = {};
  if (job.now < between) fetch_memory<d>(slope, job.is.begins, {int(blockIdx.x), job.now, between});
  keep_memory<d>(s.held, {0, 0, 1}, slope);
  OwnSteps own{s.at, (job.last() - 1) / scan_chunk * scan_chunk, int(threadIdx.x) / 32 * 16};
#pragma unroll 1
  for (; own.first >= job.first(); own.first -= scan_chunk) {
    fetch_chunk(s, job, own.first);
    show_slope(s, job, own.first);
    wait_for_chunk(s, job, own.first);
    of_keys(s, job, own);
    weigh_rows(s.written, s.dout, [&](int row) { return job.is.scale * s.numbers.from_start(row); });
    __syncthreads();
    put_numbers(s, job, own.first);
    fetch_memory<d>(slope, s.held, {0, 0, 1});
    move_memory<d>(slope, s.numbers.kept(), s.q, s.written);
    keep_memory<d>(s.held, {0, 0, 1}, slope);
    __syncthreads();
  }
  if (job.now == 0) return;
  fetch_memory<d>(slope, s.held, {0, 0, 1});
  keep_memory<d>(job.is.begins, {int(blockIdx.x), job.now - 1, between}, slope);
}

}  // namespace

void scan_backward_by_tiles(Queue& queue, DeltaBackward job) {
  const int steps = std::min(job.is.segment, job.is.steps - job.now * job.is.segment);
  job.chunks = (steps + scan_chunk - 1) / scan_chunk;
  keep_chunks(queue, job);
  with_channels(job.is, [&]<int d>(Channels<d>) {
    gpu::launch(queue, {job.is.blocks * job.chunks, scan_threads, sizeof(OfQueries<d>)}, scan_queries<d>,
                job);
    gpu::launch(queue, {job.is.blocks, scan_threads, sizeof(OfKeys<d>)}, scan_keys<d>, job);
  });
}

}  // namespace weft::cuda
