// The gated delta rule a chunk of steps at a time. With S0 the memory before the chunk, G the logarithms of
// fading summed from its first step on, and D_ij = e^(G_i - G_j):
//
//   u_i = b_i (v_i - e^G_i S0^T k_i - sum over j < i of D_ij <k_i, k_j> u_j)
//   o_i = scale (e^G_i S0^T q_i + sum over j <= i of D_ij <q_i, k_j> u_j)
//   S   = e^G_last S0 + sum over i of e^(G_last - G_i) k_i u_i^T
//
// A block has a head's memory, or some columns of it: a column does not ask for others. A difference of two
// sums of logarithms is summed by itself, so that nothing large is taken from something large.
#pragma once

#include "weft/backend/cuda/rows.h"
#include "weft/backend/cuda/space.h"

namespace weft::cuda {

inline constexpr int delta_threads = 256;

struct DeltaJob {
  Rows q, k;         // [s b g, d]
  Rows v, o, dout;   // [s b g r, d']
  Rows decay, rate;  // [s b g, r]
  const float *speed, *shift;
  std::int64_t first, last, batch;  // steps [first, last)
  int groups, heads, d, d_value, parts;
  float scale;
  const float* begin;  // memories before `first`, [b g r, d, d']; null: zeros
  float* states;       // kept, [.., b g r, d, d']; or read
  int every;           // chunks from one that is kept to the next
};

__device__ __forceinline__ float softplus(float x) { return x > 20 ? x : log1pf(expf(x)); }
__device__ __forceinline__ float sigmoid(float x) { return 1 / (1 + expf(-x)); }

/// Which head, of which sequence, and which columns of its memory a block has.
struct HeadPlace {
  std::int64_t sequence, number;  // number: of the head, over all sequences
  int head, part;

  __device__ __forceinline__ explicit HeadPlace(const DeltaJob& job) {
    const int all = job.groups * job.heads;
    number = blockIdx.x / unsigned(job.parts);
    part = int(blockIdx.x % unsigned(job.parts));
    sequence = number / all;
    head = int(number % all);
  }
  /// Rows of q and k, and of v.
  __device__ __forceinline__ std::int64_t shared_row(const DeltaJob& job, std::int64_t step) const {
    return (step * job.batch + sequence) * job.groups + head / job.heads;
  }
  __device__ __forceinline__ std::int64_t own_row(const DeltaJob& job, std::int64_t step) const {
    return shared_row(job, step) * job.heads + head % job.heads;
  }
};

/// What the columns of a head have in common of a chunk. Rows are an odd number of floats apart, so that
/// lanes on neighbouring rows meet no bank twice.
template <int widest>
struct DeltaChunk {
  static constexpr int steps = delta_chunk;
  float q[steps][widest + 1], k[steps][widest + 1];
  float keys[steps][steps + 1], queries[steps][steps + 1];  // D <k, k> below the diagonal, D <q, k> on it too
  float fading[steps], rate[steps];                         // log a, and b; 0 behind the last step
  float since[steps], left[steps];                          // e^G, and e^(G_last - G)
  float whole;                                              // e^G_last

  /// Of steps [from, from + count). All threads; what follows needs a barrier.
  __device__ __forceinline__ void load(const DeltaJob& job, const HeadPlace& place, std::int64_t from,
                                       int count) {
    for (int at = int(threadIdx.x); at < steps * job.d; at += delta_threads) {
      const int i = at / job.d, x = at - i * job.d;
      const std::int64_t row = place.shared_row(job, from + i);
      q[i][x] = i < count ? get(job.q, start_of(job.q, row) + x * job.q.step) : 0.0F;
      k[i][x] = i < count ? get(job.k, start_of(job.k, row) + x * job.k.step) : 0.0F;
    }
    const int i = int(threadIdx.x);
    if (i >= steps) return;
    fading[i] = rate[i] = 0;
    if (i >= count) return;
    const std::int64_t row = place.shared_row(job, from + i);
    const int own = place.head % job.heads;
    const float raw = get(job.decay, start_of(job.decay, row) + own * job.decay.step);
    fading[i] = -expf(job.speed[place.head]) * softplus(raw + job.shift[place.head]);
    rate[i] = sigmoid(get(job.rate, start_of(job.rate, row) + own * job.rate.step));
  }

  /// e to the sum of logarithms behind step j up to step i.
  __device__ __forceinline__ float between(int j, int i) const {
    float sum = 0;
    for (int l = j + 1; l <= i; ++l) sum += fading[l];
    return expf(sum);
  }
  /// Behind a barrier, and before one.
  __device__ __forceinline__ void relate(int d) {
    for (int at = int(threadIdx.x); at < steps * steps; at += delta_threads) {
      const int i = at / steps, j = at % steps;
      float of_keys = 0, of_queries = 0;
      if (j <= i)
        for (int x = 0; x < d; ++x) {
          of_keys += k[i][x] * k[j][x];
          of_queries += q[i][x] * k[j][x];
        }
      const float fades = j <= i ? between(j, i) : 0;
      keys[i][j] = j < i ? fades * of_keys : 0;
      queries[i][j] = fades * of_queries;
    }
    const int i = int(threadIdx.x);
    if (i >= steps) return;
    since[i] = between(-1, i);
    left[i] = between(i, steps - 1);
    if (i == 0) whole = between(-1, steps - 1);
  }
};

/// Some columns of a memory and of a chunk's values: a thread has one column, and every `apart`-th step.
template <int widest>
struct DeltaColumns {
  static constexpr int columns = widest <= 128 ? 64 : 32;
  static constexpr int apart = delta_threads / columns, each = delta_chunk / apart;
  using Memory = float[widest][columns + 1];
  using Values = float[delta_chunk][columns + 1];
};
static_assert(DeltaColumns<128>::columns == delta_columns(128) &&
              DeltaColumns<256>::columns == delta_columns(256));

/// A thread's column of a block's.
template <int widest>
struct Mine {
  static constexpr int columns = DeltaColumns<widest>::columns;
  int column, first;
  std::int64_t of_value;  // of all columns of a value
  bool there;

  __device__ __forceinline__ Mine(const DeltaJob& job, const HeadPlace& place)
      : column(int(threadIdx.x) % columns),
        first(int(threadIdx.x) / columns),
        of_value(std::int64_t(place.part) * columns + column),
        there(of_value < job.d_value) {}
  __device__ __forceinline__ static int step(int n, int first) {
    return first + n * DeltaColumns<widest>::apart;
  }
  /// Element (x, column) of memories [.., d, d'].
  __device__ __forceinline__ std::int64_t in_memory(const DeltaJob& job, const HeadPlace& place,
                                                    int x) const {
    return (place.number * job.d + x) * job.d_value + of_value;
  }
};

/// memory = where the first step begins. Behind it a barrier.
template <int widest>
__device__ __forceinline__ void begin_memory(const DeltaJob& job, const HeadPlace& place,
                                             const Mine<widest>& mine, const float* from,
                                             typename DeltaColumns<widest>::Memory& memory) {
  for (int x = mine.first; x < job.d; x += DeltaColumns<widest>::apart)
    memory[x][mine.column] = from && mine.there ? from[mine.in_memory(job, place, x)] : 0.0F;
}

/// u = b (u - sum over j < i of keys_ij u_j), row by row: a thread a column. Barriers on both sides.
template <int widest>
__device__ __forceinline__ void correct(const DeltaChunk<widest>& chunk,
                                        typename DeltaColumns<widest>::Values& u) {
  const int column = int(threadIdx.x);
  if (column >= DeltaColumns<widest>::columns) return;
  for (int i = 0; i < delta_chunk; ++i) {
    float missing = u[i][column];
    for (int j = 0; j < i; ++j) missing -= chunk.keys[i][j] * u[j][column];
    u[i][column] = chunk.rate[i] * missing;
  }
}

/// The memory behind the chunk.
template <int widest>
__device__ __forceinline__ void pass_on(const DeltaJob& job, const DeltaChunk<widest>& chunk,
                                        const Mine<widest>& mine,
                                        const typename DeltaColumns<widest>::Values& u,
                                        typename DeltaColumns<widest>::Memory& memory) {
  float u_left[delta_chunk];
#pragma unroll
  for (int i = 0; i < delta_chunk; ++i) u_left[i] = chunk.left[i] * u[i][mine.column];
  for (int x = mine.first; x < job.d; x += DeltaColumns<widest>::apart) {
    float sum = chunk.whole * memory[x][mine.column];
#pragma unroll
    for (int i = 0; i < delta_chunk; ++i) sum += chunk.k[i][x] * u_left[i];
    memory[x][mine.column] = sum;
  }
}

}  // namespace weft::cuda
