// State spaces backward in bf16, by tensor cores (state_tiles.h): all chunks of a segment at once, since the
// memory S0 before each and the slope T behind it are there (state_space_sweeps.cu). With what state_space.cu
// says,
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
// Queries' share of those is written, that of all steps and of keys added to it.
#include <algorithm>

#include "weft/backend/cuda/delta_slopes.h"
#include "weft/backend/cuda/state_tiles.h"

namespace weft::cuda {
namespace {

/// A chunk as both kernels have it, of one head after another.
template <int d>
struct ChunkOf {
  Tile<d> q, k;
  DeltaPlace at;  // here, since threads would keep all that follows from it in registers
  Narrow<scan_chunk> v, dout;
  Split<d> memory;             // or its slope
  float sums[scan_chunk * d];  // of the heads before, in places of threads' own
  ChunkNumbers numbers;
};
template <int d>
struct OfQueries : ChunkOf<d> {
  float since_start[scan_chunk], reached[scan_chunk];  // slopes of exponents from S0 on, and from other steps
};
template <int d>
struct OfKeys : ChunkOf<d> {
  float passed[scan_chunk];                  // slopes of exponents to other steps and to the end
  float time[scan_chunk], skip[scan_chunk];  // slopes of t and of the skip
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
/// of other steps of the chunk; and where it goes, behind the last head.
template <int d>
struct Gradient {
  LeftPart through;
  ChunkOf<d>& chunk;
  TwoRows factors;
  Tile<d>&own, &others;
  float* lines;
};
/// With what the heads before have.
__device__ __forceinline__ void add_heads(float* sums, const OwnSteps& own, float (&x)[8][4]) {
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    float* const at = sums + (n * scan_threads + int(threadIdx.x)) * 4;
    if (!own.first_head) {
      const auto before = gpu::load<float4>(at);
      x[n][0] += before.x;
      x[n][1] += before.y;
      x[n][2] += before.z;
      x[n][3] += before.w;
    }
    if (!own.last_head) gpu::store(at, float4{x[n][0], x[n][1], x[n][2], x[n][3]});
  }
}
/// 64 channels of this warp's rows, from one on.
struct Put {
  float* lines;
  int from;
};
__device__ __forceinline__ void put_lines(const Put& to, const DeltaBackward& job, const OwnSteps& own,
                                          const float (&x)[8][4]) {
  DeltaPlace set = own.at;
  set.r /= scan_heads;
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const int step = own.first + own.row0 + fragment_row(i);
    if (step >= job.is.steps) continue;
    float* const line = to.lines + job.line(set, step) + to.from;
#pragma unroll
    for (int n = 0; n < 8; ++n)
      if (to.from + 8 * n < job.is.d) gpu::store(line + fragment_column(n, 0), float2{x[n][i], x[n][i + 1]});
  }
}

/// p: of the chunk's steps. To sums goes the product of what is had through the memory with the rows
/// themselves.
template <int d>
__device__ __forceinline__ void put_gradient(const DeltaBackward& job, const OwnSteps& own,
                                             const Gradient<d>& of, const float (&p)[8][4], TwoRows& sums) {
#pragma unroll 1
  for (int panel = 0; panel < d / 64; ++panel) {
    float x[8][4] = {};
    add_by_parts(x, of.through.of, of.chunk.memory.high, 64 * panel);
    add_by_parts(x, of.through.of, of.chunk.memory.low, 64 * panel);
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
    add_heads(&of.chunk.sums[panel * scan_chunk * 64], own, x);
    if (own.last_head) put_lines({of.lines, 64 * panel}, job, own, x);
  }
}

/// Of pairs of this warp's rows and all columns: dP, P, and what exponents between other steps owe.
struct Pairs {
  float (&dp)[8][4], (&p)[8][4];
  TwoRows& owed;
};
enum class Rows : std::uint8_t { queries, keys };
template <Rows rows>
__device__ __forceinline__ void fade(const Pairs& of, const ChunkNumbers& is, float scale, int row0) {
#pragma unroll
  for (int n = 0; n < 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = row0 + fragment_row(i), column = fragment_column(n, i);
      const int key = rows == Rows::keys ? row : column, query = rows == Rows::keys ? column : row;
      const float left = scale * is.between(key, query);
      of.dp[n][i] *= key <= query ? left * is.time[key] : 0.0F;
      if (key < query) of.owed[i / 2] += of.dp[n][i] * of.p[n][i];
      if (rows == Rows::keys) of.p[n][i] *= key <= query ? left : 0.0F;
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
  fade<Rows::queries>({dp, p, reached}, is, job.is.scale, row0);
  put_rows(s.reached, row0, reached);
  TwoRows since_start = {};
  const Gradient<d> of{dout,
                       s,
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
  through_memory<d>(w, s.k, row0, s.memory);
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
  fade<Rows::keys>({dp, p, passed}, is, job.is.scale, row0);
  of_values(s, job, own, p);
  const int rows[2] = {row0 + fragment_row(0), row0 + fragment_row(2)};
  const Gradient<d> of{
      v, s, {is.to_end(rows[0]) * is.time[rows[0]], is.to_end(rows[1]) * is.time[rows[1]]}, s.k, s.q, job.dk};
  put_gradient(job, own, of, dp, passed);
  put_rows(s.passed, row0, passed);
}

/// A block's chunk, set of heads and part of their columns, and the first of those heads.
struct SetPlace {
  int first;
  DeltaPlace at;
};
__device__ __forceinline__ SetPlace set_place(const DeltaBackward& job) {
  const int sets = (job.is.heads + scan_heads - 1) / scan_heads;
  const int all = int(blockIdx.x) / job.chunks, parts = all / job.is.parts, groups = parts / sets,
            b = groups / job.is.groups;
  return {job.first() + (int(blockIdx.x) - all * job.chunks) * scan_chunk,
          {b, groups - b * job.is.groups, (parts - groups * sets) * scan_heads, all - parts * job.is.parts}};
}
/// As delta_place() has it.
__device__ __forceinline__ int block_of(const DeltaJob& job, const DeltaPlace& at) {
  return ((at.b * job.groups + at.g) * job.heads + at.r) * job.parts + at.part;
}

/// A chunk and what memory it has, or slope; act(where) once for each head. Another chunk asks for nothing of
/// it.
template <class Chunk, class Act>
__device__ __forceinline__ void each_head(Chunk& s, const DeltaBackward& job, Act act) {
  const auto [first, set] = set_place(job);
  const Stretch steps{first, job.is.steps, set.b, set.g, 0};
  fetch(s.q, job.is.q, steps);
  fetch(s.k, job.is.k, steps);
  if (threadIdx.x == 0) s.at = set;
  const int left = job.is.heads - set.r, heads = left < scan_heads ? left : scan_heads;
#pragma unroll 1
  for (int head = 0; head < heads; ++head) {
    __syncthreads();
    const DeltaPlace& at = s.at;
    const Stretch of_head{first, job.is.steps, at.b, at.g, at.r};
    fetch_part(s.v, job.is.v, of_head, at.part * delta_part);
    fetch_part(s.dout, job.is.o, of_head, at.part * delta_part);
    gpu::commit_copies();
    show_kept(s.memory, job.states, {block_of(job.is, at), (first - job.first()) / scan_chunk, job.chunks});
    if (threadIdx.x < 32)
      find_numbers(s.numbers, numbers_of_head(job.is, at), ask_decays(job.is, at, first),
                   job.is.steps - first);
    gpu::wait_copies<0>();
    __syncthreads();
    act(OwnSteps{at, first, int(threadIdx.x) / 32 * 16, head == 0, head + 1 == heads});
    __syncthreads();
    if (threadIdx.x == 0) ++s.at.r;
  }
}

template <int d>
__global__ void __launch_bounds__(scan_threads, 2) scan_queries(DeltaBackward job) {
  auto& s = gpu::shared<OfQueries<d>>();
  each_head(s, job, [&](const OwnSteps& own) {
    of_queries(s, job, own);
    __syncthreads();
    const int l = int(threadIdx.x);
    if (l >= scan_chunk || own.first + l >= job.is.steps) return;
    float sum = 0;
    for (int i = 0; i < scan_chunk; ++i) sum += i < l ? -s.reached[i] : s.since_start[i];
    job.dlog[job.number(own.at, own.first + l)] = sum;
  });
}

template <int d>
__global__ void __launch_bounds__(scan_threads, 2) scan_keys(DeltaBackward job) {
  auto& s = gpu::shared<OfKeys<d>>();
  each_head(s, job, [&](const OwnSteps& own) {
    of_keys(s, job, own);
    __syncthreads();
    const int l = int(threadIdx.x);
    if (l >= scan_chunk || own.first + l >= job.is.steps) return;
    float sum = 0;
    for (int i = 0; i < l; ++i) sum += s.passed[i];
    const std::int64_t to = job.number(own.at, own.first + l);
    job.dlog[to] += sum;
    job.drate[to] = s.time[l];
    job.dskip[to] = s.skip[l];
  });
}

}  // namespace

void scan_backward_by_tiles(Queue& queue, DeltaBackward job) {
  const int steps = std::min(job.is.segment, job.is.steps - job.now * job.is.segment),
            sets = (job.is.heads + scan_heads - 1) / scan_heads;
  job.chunks = (steps + scan_chunk - 1) / scan_chunk;
  const std::int64_t blocks = std::int64_t(job.is.batch) * job.is.groups * sets * job.is.parts * job.chunks;
  keep_chunks(queue, job);
  with_channels(job.is, [&]<int d>(Channels<d>) {
    gpu::launch(queue, {blocks, scan_threads, sizeof(OfQueries<d>)}, scan_queries<d>, job);
    slopes_of_chunks(queue, job);
    gpu::launch(queue, {blocks, scan_threads, sizeof(OfKeys<d>)}, scan_keys<d>, job);
  });
}

}  // namespace weft::cuda
