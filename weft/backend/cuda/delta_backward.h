// The gated delta rule backward, one chunk (delta_chunks.h has the rule). With dS the gradient of the memory
// behind the chunk, P and M what queries and keys have to do with keys, and u_i = b_i r_i:
//
//   dU = scale P^T dO + e^(G_last - G) K dS,   w_i = dU_i - sum over j > i of b_j M_ji w_j,   dv_i = b_i w_i
//   db_i = <w_i, r_i>,   dM_ij = -<b_i w_i, u_j>,   dP_ij = scale <dO_i, u_j>
//   dS0 = e^G_last dS - sum of e^G_i k_i (b_i w_i)^T + scale sum of e^G_i q_i dO_i^T
//
// Every logarithm of fading is in all e^G behind it, and in e^(G_last - G) before it.
#pragma once

#include "weft/backend/cuda/delta_job.h"
#include "weft/backend/cuda/reduce.h"

namespace weft::cuda {

/// Rows of partial sums are those of a segment's steps: [parts, steps b g r, ..].
struct DeltaBack {
  DeltaJob of;
  Rows dv;         // [s b g r, d']
  float* dmemory;  // [b g r, d, d']: of the memories behind the segment, then before it
  float *dq, *dk, *dlog, *drate;
  std::int64_t rows;
};

template <int widest>
struct DeltaBackward {
  using Columns = DeltaColumns<widest>;
  static constexpr int steps = delta_chunk, halves = Columns::columns / 32, warps = delta_threads / 32;
  static constexpr int each = Columns::each;
  DeltaChunk<widest> chunk;
  typename Columns::Memory before, dmemory;
  typename Columns::Values missing, w, dout;                             // missing: r
  float since[halves][steps], left[halves][steps], rate[halves][steps];  // terms of dG, -dG and db
  float rows[steps], columns[warps][steps];                              // sums of dM M + dP P
  Scratch scratch;
  float whole;  // <S0, dS>

  /// What a thread's steps read of both memories.
  struct Read {
    float to_keys[each] = {}, to_queries[each] = {}, of_keys[each] = {};
  };

  __device__ __forceinline__ void load(const DeltaBack& job, const HeadPlace& place, const Mine<widest>& mine,
                                       std::int64_t from) {
    const DeltaJob& of = job.of;
    const int count = int(of.last - from < steps ? of.last - from : steps);
    chunk.load(of, place, from, count);
    const std::int64_t number = (from - of.first) / steps, heads = of.batch * of.groups * of.heads;
    begin_memory<widest>(of, place, mine, of.states + number * heads * of.d * of.d_value, before);
    for (int n = 0; n < each; ++n) {
      const int i = mine.step(n, mine.first);
      const bool there = i < count && mine.there;
      const std::int64_t row = there ? place.own_row(of, from + i) : 0;
      missing[i][mine.column] = there ? get(of.v, start_of(of.v, row) + mine.of_value * of.v.step) : 0.0F;
      dout[i][mine.column] =
          there ? get(of.dout, start_of(of.dout, row) + mine.of_value * of.dout.step) : 0.0F;
    }
  }

  __device__ __forceinline__ Read read(int d, const Mine<widest>& mine) const {
    Read out;
    for (int x = 0; x < d; ++x) {
      const float ahead = before[x][mine.column], behind = dmemory[x][mine.column];
#pragma unroll
      for (int n = 0; n < each; ++n) {
        const int i = mine.step(n, mine.first);
        out.to_keys[n] += chunk.k[i][x] * ahead;
        out.to_queries[n] += chunk.q[i][x] * ahead;
        out.of_keys[n] += chunk.k[i][x] * behind;
      }
    }
    return out;
  }

  /// missing = r, from v less what memories said before the chunk. A thread a column.
  __device__ __forceinline__ void miss() {
    const int column = int(threadIdx.x);
    if (column >= Columns::columns) return;
    for (int i = 0; i < steps; ++i) {
      float r = missing[i][column];
      for (int j = 0; j < i; ++j) r -= chunk.keys[i][j] * chunk.rate[j] * missing[j][column];
      missing[i][column] = r;
    }
  }
  /// w, from dU.
  __device__ __forceinline__ void solve() {
    const int column = int(threadIdx.x);
    if (column >= Columns::columns) return;
    for (int i = steps - 1; i >= 0; --i) {
      float x = w[i][column];
      for (int j = i + 1; j < steps; ++j) x -= chunk.rate[j] * chunk.keys[j][i] * w[j][column];
      w[i][column] = x;
    }
  }
  /// dU.
  __device__ __forceinline__ void gather(const DeltaJob& of, const Mine<widest>& mine, const Read& read) {
#pragma unroll
    for (int n = 0; n < each; ++n) {
      const int i = mine.step(n, mine.first);
      float sum = 0;
      for (int l = i; l < steps; ++l) sum += chunk.queries[l][i] * dout[l][mine.column];
      w[i][mine.column] = of.scale * sum + chunk.left[i] * read.of_keys[n];
    }
  }

  /// dv, and what a column adds to the gradients of fading and of rates.
  __device__ __forceinline__ void values(const DeltaBack& job, const HeadPlace& place,
                                         const Mine<widest>& mine, const Read& read, std::int64_t from) {
    const DeltaJob& of = job.of;
#pragma unroll
    for (int n = 0; n < each; ++n) {
      const int i = mine.step(n, mine.first), half = mine.column / 32;
      const float rate_i = chunk.rate[i], r = missing[i][mine.column], x = w[i][mine.column];
      if (from + i < of.last && mine.there)
        put(job.dv, start_of(job.dv, place.own_row(of, from + i)) + mine.of_value * job.dv.step, rate_i * x);
      const float ahead = of.scale * read.to_queries[n] * dout[i][mine.column] - read.to_keys[n] * rate_i * x;
      const float a = over_warp(chunk.since[i] * ahead, Plus{});
      const float b = over_warp(chunk.left[i] * read.of_keys[n] * rate_i * r, Plus{});
      const float c = over_warp(x * r, Plus{});
      if (threadIdx.x % 32 != 0) continue;
      since[half][i] = a;
      left[half][i] = b;
      rate[half][i] = c;
    }
    float both = 0;
    for (int x = mine.first; x < of.d; x += Columns::apart)
      both += before[x][mine.column] * dmemory[x][mine.column];
    both = over_block(both, scratch, 0, Plus{});
    if (threadIdx.x == 0) whole = both;
  }

  /// keys and queries become dM D and dP D. A warp takes rows, a lane the same column of all.
  __device__ __forceinline__ void relate_backward(const DeltaJob& of) {
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    float below = 0;
    for (int i = warp; i < steps; i += warps) {
      float of_keys = 0, of_queries = 0;
      for (int c = 0; c < Columns::columns; ++c) {
        of_keys += w[i][c] * missing[lane][c];
        of_queries += dout[i][c] * missing[lane][c];
      }
      const float dm = lane < i ? -chunk.rate[i] * chunk.rate[lane] * of_keys : 0;
      const float dp = lane <= i ? of.scale * chunk.rate[lane] * of_queries : 0;
      const float term = dm * chunk.keys[i][lane] + dp * chunk.queries[i][lane];
      const float fades = lane <= i ? chunk.between(lane, i) : 0;
      chunk.keys[i][lane] = dm * fades;
      chunk.queries[i][lane] = dp * fades;
      below += term;
      const float row = over_warp(term, Plus{});
      if (lane == 0) rows[i] = row;
    }
    columns[warp][lane] = below;
  }

  /// This part's share of dq and dk. A warp takes four steps, a lane every 32nd channel.
  __device__ __forceinline__ void keys_backward(const DeltaBack& job, const HeadPlace& place,
                                                std::int64_t from) const {
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    for (int x = lane; x < job.of.d; x += 32)
      for (int i = warp; i < steps && from + i < job.of.last; i += warps) {
        float of_dout = 0, of_w = 0, of_r = 0;
        for (int c = 0; c < Columns::columns; ++c) {
          of_dout += before[x][c] * dout[i][c];
          of_w += before[x][c] * w[i][c];
          of_r += dmemory[x][c] * missing[i][c];
        }
        float dq = job.of.scale * chunk.since[i] * of_dout;
        float dk = chunk.rate[i] * (chunk.left[i] * of_r - chunk.since[i] * of_w);
        for (int j = 0; j < steps; ++j) {
          dq += chunk.queries[i][j] * chunk.k[j][x];
          dk += chunk.queries[j][i] * chunk.q[j][x] + (chunk.keys[j][i] + chunk.keys[i][j]) * chunk.k[j][x];
        }
        const std::int64_t at = row_of(job, place, from + i) * job.of.d + x;
        job.dq[at] = dq;
        job.dk[at] = dk;
      }
  }

  /// This part's share of the gradients of log a and of b.
  __device__ __forceinline__ void gates_backward(const DeltaBack& job, const HeadPlace& place,
                                                 std::int64_t from) const {
    const int i = int(threadIdx.x);
    if (i >= steps || from + i >= job.of.last) return;
    float last = chunk.whole * whole, dlog = 0, drate = 0;
    for (int j = 0; j < steps; ++j)
      for (int half = 0; half < halves; ++half) last += left[half][j];
    for (int j = i; j < steps; ++j) {
      dlog += rows[j];
      for (int warp = 0; warp < warps; ++warp) dlog -= columns[warp][j];
      for (int half = 0; half < halves; ++half) dlog += since[half][j] - left[half][j];
    }
    for (int half = 0; half < halves; ++half) drate += rate[half][i];
    const std::int64_t at = row_of(job, place, from + i);
    job.dlog[at] = dlog + last;
    job.drate[at] = drate;
  }

  /// dmemory goes from behind the chunk to before it.
  __device__ __forceinline__ void go_back(const DeltaJob& of, const Mine<widest>& mine) {
    float keys[steps], queries[steps];
#pragma unroll
    for (int i = 0; i < steps; ++i) {
      keys[i] = -chunk.since[i] * chunk.rate[i] * w[i][mine.column];
      queries[i] = of.scale * chunk.since[i] * dout[i][mine.column];
    }
    for (int x = mine.first; x < of.d; x += Columns::apart) {
      float sum = chunk.whole * dmemory[x][mine.column];
#pragma unroll
      for (int i = 0; i < steps; ++i) sum += chunk.k[i][x] * keys[i] + chunk.q[i][x] * queries[i];
      dmemory[x][mine.column] = sum;
    }
  }

  __device__ __forceinline__ static std::int64_t row_of(const DeltaBack& job, const HeadPlace& place,
                                                        std::int64_t step) {
    const DeltaJob& of = job.of;
    return place.part * job.rows + ((step - of.first) * of.batch + place.sequence) * of.groups * of.heads +
           place.head;
  }
};

}  // namespace weft::cuda
