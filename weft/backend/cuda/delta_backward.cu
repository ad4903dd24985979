// The gated delta rule and state spaces backward: chunks from the last to the first, with the slope T of the
// state behind each. That goes by segments of steps, for each of which a launch makes the states before every
// second chunk, from the one that was kept before the segment; the one between is computed again. With what
// delta_chunks.h says, P_ij = e^x_ij (q_i k_j), M_ij = e^x_ij (k_i k_j), u_i = b_i m_i, y_i = b_i w_i:
//
//   w_i = e^x_last,i T^T k_i + scale sum over j >= i of P_ji do_j - sum over j > i of M_ji y_j
//   dv_i = y_i,  db_i = w_i m_i,  dP_ij = scale do_i u_j,  dM_ij = -y_i u_j
//   dq_i = e^x_i scale S0 do_i + sum over j of e^x_ij dP_ij k_j
//   dk_i = e^x_last,i T u_i - e^x_i S0 y_i
//          + sums over j of e^x_ji dP_ji q_j, e^x_ji dM_ji k_j, e^x_ij dM_ij k_j
//   T before = e^x_last T + sum over i of e^x_i (scale q_i do_i^T - k_i y_i^T)
//
// In a state space dM = 0, S0 y_i and k_i y_i^T are not there, dv_i = t_i w_i + skip do_i and dt_i = w_i v_i.
//
// An exponent's slope is what it multiplied times that one's slope, and a step's log a is in each exponent
// that reaches over it.
#include "weft/backend/cuda/delta_chunks.h"
#include "weft/backend/cuda/delta_slopes.h"
#include "weft/backend/cuda/kernels.h"
#include "weft/backend/cuda/reduce.h"

namespace weft {
namespace cuda {
namespace {

template <int wide, bool corrects>
struct DeltaSlopes : DeltaChunk<wide, corrects> {
  DeltaPlace at;        // here, since threads would keep all that follows from it in registers
  Columns slope[wide];  // T
  Columns dout[delta_chunk], told[delta_chunk];  // told: T^T k
  Columns w[delta_chunk];
  Pairs dqueries, dqueries_turned, dkeys;  // e^x dP, from row i to column j; e^x dM, both ways
  Pairs crossed;                           // slopes of exponents between steps
  float since_start[delta_chunk], until_end[delta_chunk];  // slopes of those from S0 on, and to the end
  float drate[delta_chunk], dskip[delta_chunk];            // drate: dt in a state space
  float whole[delta_warps];                                // of the exponent over all steps, a warp's share
};

/// As find_missing(), from the last step on.
template <class Chunk>
__device__ __forceinline__ void find_slopes(Chunk& s, float scale) {
  const int lane = lane_here();
  float x[delta_chunk];
#pragma unroll
  for (int i = 0; i < delta_chunk; ++i) x[i] = s.to_end[i] * s.told[i][lane];
#pragma unroll 1
  for (int j = 0; j < delta_chunk; ++j) {
    const float above = scale * s.dout[j][lane];
#pragma unroll
    for (int i = 0; i < delta_chunk; ++i) x[i] += s.of_queries[j][i] * above;  // 0 for i > j
  }
#pragma unroll
  for (int j = delta_chunk - 1; j >= 0; --j) {
    s.w[j][lane] = x[j];
    const float y = s.rate[j] * x[j];
#pragma unroll
    for (int i = 0; i < j; ++i) x[i] -= s.of_keys[j][i] * y;
  }
}

/// The same where nothing is corrected: of two steps of this warp, which alone asks for them until the next
/// barrier.
template <class Chunk>
__device__ __forceinline__ void add_slopes(Chunk& s, float scale) {
  const int lane = lane_here();
#pragma unroll
  for (int i = 2 * warp_here(); i < 2 * warp_here() + 2; ++i) {
    float x = s.to_end[i] * s.told[i][lane];
    for (int j = i; j < delta_chunk; ++j) x += s.of_queries[j][i] * scale * s.dout[j][lane];
    s.w[i][lane] = x;
  }
}

/// What two steps of this warp have along all columns.
template <class Chunk>
__device__ __forceinline__ void add_along_columns(Chunk& s, float scale, int width) {
  const int lane = lane_here();
#pragma unroll
  for (int i = 2 * warp_here(); i < 2 * warp_here() + 2; ++i) {
    const float rate = s.rate[i], w = s.w[i][lane], missing = s.missing[i][lane];
    float start = scale * s.asked[i][lane] * s.dout[i][lane];
    if (Chunk::corrects) start -= rate * w * s.said[i][lane];
    const float from_start = over_warp(s.from_start[i] * start, Plus{});
    const float to_end = over_warp(s.to_end[i] * rate * missing * s.told[i][lane], Plus{});
    const float drate = over_warp(w * missing, Plus{});
    const float dskip = Chunk::corrects ? 0 : over_warp(s.dout[i][lane] * missing, Plus{});
    if (lane != 0) continue;
    s.since_start[i] = from_start;
    s.until_end[i] = to_end;
    s.drate[i] = drate;
    s.dskip[i] = dskip;
  }
  float sum = 0;
  each_own_row(width, [&](int row) { sum += s.state[row][lane] * s.slope[row][lane]; });
  sum = s.kept() * over_warp(sum, Plus{});
  if (lane == 0) s.whole[warp_here()] = sum;
}

/// Slopes of what steps have to do with each other; a thread a pair.
template <class Chunk>
__device__ __forceinline__ void slopes_of_pairs(Chunk& s, float scale) {
  const int i = int(threadIdx.x) / delta_chunk, j = int(threadIdx.x) % delta_chunk;
  const float dp = j <= i ? scale * s.rate[j] * along(s.dout[i], s.missing[j], delta_part) : 0.0F;
  s.dqueries[i][j] = s.dqueries_turned[j][i] = s.fade[i][j] * dp;
  if (j > i) return;
  s.crossed[i][j] = dp * s.of_queries[i][j];
  if (!Chunk::corrects) return;
  const float dm = j < i ? -s.rate[i] * s.rate[j] * along(s.w[i], s.missing[j], delta_part) : 0.0F;
  s.dkeys[i][j] = s.dkeys[j][i] = s.fade[i][j] * dm;
  s.crossed[i][j] += dm * s.of_keys[i][j];
}

/// The slopes of log a and of b, of this thread's step.
template <class Chunk>
__device__ __forceinline__ void put_numbers(const Chunk& s, const DeltaBackward& job, const DeltaPlace& at,
                                            int first) {
  const int l = int(threadIdx.x);
  if (l >= delta_chunk || first + l >= job.is.steps) return;
  float sum = 0;
  for (int w = 0; w < delta_warps; ++w) sum += s.whole[w];
  for (int i = 0; i < l; ++i) sum += s.until_end[i];
  for (int i = l; i < delta_chunk; ++i) {
    sum += s.since_start[i];
    for (int j = 0; j < l; ++j) sum += s.crossed[i][j];
  }
  job.dlog[job.number(at, first + l)] = sum;
  job.drate[job.number(at, first + l)] = s.drate[l];
  if (!Chunk::corrects) job.dskip[job.number(at, first + l)] = s.dskip[l];
}

/// Steps of a chunk whose rows a thread computes, a channel of each.
constexpr int own_steps = 8;
struct Own {
  int row, step;  // the first of own_steps
};

/// What they have through the states: sums[0] is of dq, [1] and [2] of dk, whose factors still miss.
template <class Chunk>
__device__ __forceinline__ void through_states(const Chunk& s, const Own& own, float (&sums)[3][own_steps]) {
  const auto add = [](float& to, const float4& a, const float4& b) {
    to += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
  };
#pragma unroll 1
  for (int c = 0; c < delta_part; c += 4) {
    const auto state = gpu::load<float4>(&s.state[own.row][c]),
               slope = gpu::load<float4>(&s.slope[own.row][c]);
#pragma unroll
    for (int i = 0; i < own_steps; ++i) {
      add(sums[0][i], state, gpu::load<float4>(&s.dout[own.step + i][c]));
      add(sums[1][i], slope, gpu::load<float4>(&s.missing[own.step + i][c]));
      if (Chunk::corrects) add(sums[2][i], state, gpu::load<float4>(&s.w[own.step + i][c]));
    }
  }
}

/// This part's dq and dk of a chunk.
template <class Chunk>
__device__ __forceinline__ void put_rows(const Chunk& s, const DeltaBackward& job, const DeltaPlace& at,
                                         int first) {
  constexpr int at_once = delta_threads / (delta_chunk / own_steps);
  Own own{int(threadIdx.x) % at_once, int(threadIdx.x) / at_once * own_steps};
  for (; own.row < job.is.d; own.row += at_once) {
    float sums[3][own_steps] = {};
    through_states(s, own, sums);
#pragma unroll
    for (int i = 0; i < own_steps; ++i) {
      const int step = own.step + i;
      sums[0][i] *= job.is.scale * s.from_start[step];
      sums[1][i] = s.rate[step] * (s.to_end[step] * sums[1][i] - s.from_start[step] * sums[2][i]);
    }
#pragma unroll 1
    for (int j = 0; j < delta_chunk; ++j) {
      const float q = s.q[j][own.row], k = s.k[j][own.row];
#pragma unroll
      for (int i = 0; i < own_steps; ++i) {
        sums[0][i] += s.dqueries_turned[j][own.step + i] * k;
        sums[1][i] += s.dqueries[j][own.step + i] * q;
        if (Chunk::corrects) sums[1][i] += s.dkeys[j][own.step + i] * k;
      }
    }
#pragma unroll
    for (int i = 0; i < own_steps; ++i) {
      if (first + own.step + i >= job.is.steps) break;
      const std::int64_t line = job.line(at, first + own.step + i) + own.row;
      job.dq[line] = sums[0][i];
      job.dk[line] = sums[1][i];
    }
  }
}

template <class Chunk>
__device__ __forceinline__ void put_values(const Chunk& s, const DeltaBackward& job, const DeltaPlace& at,
                                           int first) {
  const int lane = lane_here(), column = at.part * delta_part + lane;
  if (column >= job.dv.one.width) return;
#pragma unroll
  for (int i = 2 * warp_here(); i < 2 * warp_here() + 2; ++i)
    if (first + i < job.is.steps) {
      float sum = s.rate[i] * s.w[i][lane];
      if (!Chunk::corrects) sum += job.is.skip[at.g * job.is.heads + at.r] * s.dout[i][lane];
      put(job.dv.one, job.dv.at(first + i, at.b, at.g, at.r) + column, sum);
    }
}

/// From behind a chunk to before it.
template <class Chunk>
__device__ __forceinline__ void move_slope(Chunk& s, float scale, int width) {
  const int lane = lane_here();
  float by[delta_chunk];
#pragma unroll
  for (int i = 0; i < delta_chunk; ++i) by[i] = scale * s.from_start[i] * s.dout[i][lane];
  add_to_matrix(s.slope, s.kept(), s.q, by, width);
  if (!Chunk::corrects) return;
#pragma unroll
  for (int i = 0; i < delta_chunk; ++i) by[i] = -s.from_start[i] * s.rate[i] * s.w[i][lane];
  add_to_matrix(s.slope, 1, s.k, by, width);
}

/// Gives what a chunk owes, and brings the slope before it; the state is that before it.
template <class Chunk>
__device__ __forceinline__ void go_back(Chunk& s, const DeltaBackward& job, const DeltaPlace& at, int first) {
  const int width = job.is.eights() * 8;
  __syncthreads();
  load_chunk<true>(s, job.is, at, first);
  hold_steps(s.dout, job.is, job.is.o, at, {first, at.part * delta_part, delta_part / 8});
  __syncthreads();
  compare_steps<true>(s, width);
  if (Chunk::corrects) through_matrix(s.said, s.k, s.state, width);
  through_matrix(s.asked, s.q, s.state, width);
  through_matrix(s.told, s.k, s.slope, width);
  __syncthreads();
  if constexpr (Chunk::corrects) {
    if (warp_here() == 0) find_missing(s);
    if (warp_here() == 1) find_slopes(s, job.is.scale);
    __syncthreads();
  } else {
    add_slopes(s, job.is.scale);
  }
  add_along_columns(s, job.is.scale, width);
  slopes_of_pairs(s, job.is.scale);
  put_values(s, job, at, first);
  __syncthreads();
  put_rows(s, job, at, first);
  put_numbers(s, job, at, first);
  __syncthreads();
  move_slope(s, job.is.scale, width);
}

/// Steps from one on, with the state before it in hand, to another; on the way states may be kept before each
/// stretch.
struct Walk {
  int first, last;
  bool keeping;
};
template <class Chunk>
__device__ __forceinline__ void walk_over(Chunk& s, const DeltaBackward& job, const Walk& walk) {
  const int width = job.is.eights() * 8;
#pragma unroll 1
  for (int first = walk.first;; first += delta_chunk) {
    if (walk.keeping && first % delta_stretch == 0) keep_matrix(job.state_before(first), s.state, width);
    if (first == walk.last) return;
    go_through<false>(s, job.is, s.at, first);
    move_state(s, job.is);
  }
}

/// What a segment begins with, and what comes to it from behind.
template <class Chunk>
__device__ __forceinline__ void begin_segment(Chunk& s, const DeltaBackward& job, int width) {
  if (job.now == 0)
    clear_matrix(s.state, width);
  else
    fetch_matrix(s.state, segment_place(job.is, job.now), width);
  if (job.now + 1 == job.is.segments)
    clear_matrix(s.slope, width);
  else
    fetch_matrix(s.slope, segment_place(job.is, job.now + 1), width);
}

/// A segment: over all of it once, for the states, then back. (Both walks are one place in the code, which
/// would be twice as long.)
template <int wide, bool corrects>
__global__ void __launch_bounds__(delta_threads, 2) remember_backward(DeltaBackward job) {
  auto& s = gpu::shared<DeltaSlopes<wide, corrects>>();
  if (threadIdx.x == 0) s.at = delta_place(job.is, int(blockIdx.x));
  const int width = job.is.eights() * 8;
  begin_segment(s, job, width);
  Walk walk{job.first(), (job.last() - 1) / delta_stretch * delta_stretch, true};
  int first = (job.last() - 1) / delta_chunk * delta_chunk;
#pragma unroll 1
  while (true) {
    walk_over(s, job, walk);
    if (!walk.keeping) {
      go_back(s, job, s.at, first);
      first -= delta_chunk;
    }
    if (first < job.first()) break;
    walk = {first / delta_stretch * delta_stretch, first, false};
    fetch_matrix(s.state, job.state_before(first), width);
  }
  if (job.now > 0) keep_matrix(segment_place(job.is, job.now), s.slope, width);
}

void go_back_over_segment(Queue& queue, const DeltaBackward& job, bool by_tiles) {
  if (by_tiles) return scan_backward_by_tiles(queue, job);
  with_form(job.is, [&]<int wide, bool corrects>(Form<wide, corrects>) {
    gpu::launch(queue, {job.is.blocks, delta_threads, sizeof(DeltaSlopes<wide, corrects>)},
                remember_backward<wide, corrects>, job);
  });
}

}  // namespace
}  // namespace cuda

void CudaKernels::delta_rule_backward(const DeltaGrads& grads, const Tensor& dout, const DeltaIn& in) {
  using namespace cuda;
  if (dout.elements() == 0) return;
  DeltaBackward job{};
  job.is = delta_job("delta_rule_backward", dout, in);
  job.dv = heads_of(grads.dv);
  const Tensor begins = workspace(states_of_segments(in, dout)),
               states = workspace(states_in_segment(in, dout)), lines = workspace(lines_of_delta(in, dout)),
               numbers = workspace(numbers_of_delta(in));
  job.is.begins = elements<float>(begins);
  job.states = elements<float>(states);
  job.dq = elements<float>(lines);
  job.dk = job.dq + lines.elements() / 2;
  const std::int64_t one_number = numbers.elements() / numbers.dim(0);
  job.dlog = elements<float>(numbers);
  job.drate = job.dlog + one_number;
  if (!in.corrects()) job.dskip = job.drate + one_number;
  const bool by_tiles = scans_by_tiles(in, dout);
  by_tiles ? keep_scanned(queue(), job.is) : keep_states(queue(), job.is);
  for (job.now = job.is.segments - 1; job.now >= 0; --job.now) {
    go_back_over_segment(queue(), job, by_tiles);
    add_lines_of_delta(queue(), job, grads, lines);
  }
  add_numbers_of_delta(queue(), job, grads);
}

}  // namespace weft
