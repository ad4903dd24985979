// Attention of small floats backward, by tensor cores: one kernel for the gradients of queries, a block 64 of
// them, and one for those of keys and values, a block 64 of them; of wide heads one for each, since a thread
// has no registers for both sums. Scores are computed twice (three times), and no sum is anybody else's, so
// nothing depends on who came first.
//
// p = exp(score - lse), k(ept) its dropout factor, delta = <dout, o>:
//   dv_j += p k dout,  ds = p (k <dout, v_j> - delta),  dq += scale ds k_j,  dk_j += scale ds q
#include "weft/backend/cuda/attention_fast.h"
#include "weft/backend/cuda/attention_tiles.h"

namespace weft::cuda {
namespace {

/// Rows that pass by at once: of wide heads so few that every GPU has the memory for a block.
constexpr int rows_at_once(int d) { return d > 192 ? 16 : d > 128 ? 32 : 64; }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
constexpr bool blackwell = true;
#else
constexpr bool blackwell = false;
#endif
/// How many of them are worked on at once, in eights: scores and slopes of half a tile, or of a quarter, are
/// what a thread has registers for beside the sums. With more, nvcc spills, for Blackwell sooner.
constexpr int keys_at_once(int d, bool everything) {
  return d > 192 || (blackwell && d == 64 && !everything) ? 2 : 4;
}
constexpr int queries_at_once(int d, bool everything) {
  return d > 192 || (everything && d == 128) || (blackwell && (d == 128 || everything)) ? 2 : 4;
}
template <int count>
using Scores = float[count][4];

/// A block's own 64 rows of two tensors.
template <int d, int dv>
struct Own {
  Tile<d> left;    // queries or keys
  Tile<dv> right;  // dout or values
};
template <int d, int dv>
struct Passing {
  Tile<d, rows_at_once(d)> left;
  Tile<dv, rows_at_once(d)> right;
};
/// Those that pass by, the next ones under way. Where queries pass by, numbers are of each: first those that
/// make a probability of its scores, then its corrections.
template <int d, int dv>
struct Shared {
  Own<d, dv> own;
  Passing<d, dv> passing[2];
  float numbers[2][tile_threads];
};

/// Heads so wide that a block's own rows stay in registers.
constexpr int held = 64;

/// What a query's scores, in powers of two, become probabilities and slopes by. No score makes a probability
/// where lse is infinite: of who sees nothing, and behind the last query.
struct OfQuery {
  float lse, delta;
};
__device__ __forceinline__ OfQuery numbers_of(const AttentionBackward& job, const Pair& at) {
  if (at.i >= job.attend.sq) return {INFINITY, 0};
  const std::int64_t query = job.attend.query_of(at);
  return {job.power[query], job.delta[query]};
}

/// Columns that pass by a warp: the pair of the first one and of the first row; what is to be asked of them,
/// and where that is everything a bit for each element that is seen and that is dropped.
template <bool everything>
struct Part {
  const Attend& attend;
  const Pair& at;
  bool edges;
  std::uint32_t seen, dropped;
};
template <bool everything, bool turned, int count>
__device__ __forceinline__ Part<everything> part_at(const Attend& a, const Pair& at, Ask ask) {
  return {a, at, ask == Ask::edges, everything ? seen<turned, count>(a, at) : 0,
          everything && a.samples ? dropped<turned, count>(a, at) : 0};
}

/// A score and <dout, v> of a pair; what comes of them is its probability (times what is kept) and slope.
struct Slope {
  float p, ds;
};
/// bit is the pair's; bias is added where it is seen, if anything is.
__device__ __forceinline__ Slope slope_of(const Part<true>& part, int bit, const OfQuery& query,
                                          const float* bias, Slope from) {
  const Attend& a = part.attend;
  const bool seen = part.seen >> bit & 1;
  const float p = seen ? exp2f((from.p * a.scale + (a.bias ? *bias : 0)) * log2_e - query.lse) : 0;
  const float kept = !a.samples ? 1 : part.dropped >> bit & 1 ? 0 : a.factor;
  return {p * kept, p * (kept * from.ds - query.delta)};
}

/// The same where nothing is added and nothing dropped; unit brings scores to powers of two.
__device__ __forceinline__ Slope plain_slope(float unit, const OfQuery& query, Slope from) {
  const float p = gpu::power_of_two(from.p * unit - query.lse);
  return {p, p * (from.ds - query.delta)};
}

/// Scores and <dout, v> of rows that are queries become probabilities and slopes; query has those of this
/// thread.
template <int count>
__device__ __forceinline__ void slopes_of_queries(const Part<false>& part, const OfQuery (&query)[2],
                                                  float (&s)[count][4], float (&along)[count][4]) {
  if (part.edges) hide<false>(part.attend, part.at, s);
  const float unit = part.attend.scale * log2_e;
#pragma unroll
  for (int n = 0; n < count; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const Slope slope = plain_slope(unit, query[i / 2], {s[n][i], along[n][i]});
      s[n][i] = slope.p;
      along[n][i] = slope.ds;
    }
}
template <int count>
__device__ __forceinline__ void slopes_of_queries(const Part<true>& part, const OfQuery (&query)[2],
                                                  float (&s)[count][4], float (&along)[count][4]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float* bias = bias_of(part.attend, pair_at<false>(part.at, fragment_row(2 * half), 0));
#pragma unroll
    for (int n = 0; n < count; ++n)
#pragma unroll
      for (int i = 2 * half; i < 2 * half + 2; ++i) {
        const float* added = bias - fragment_column(n, i);
        const Slope slope = slope_of(part, 4 * n + i, query[half], added, {s[n][i], along[n][i]});
        s[n][i] = slope.p;
        along[n][i] = slope.ds;
      }
  }
}

/// The same of rows that are keys; numbers are those of the query of column 0 and what follows, corrections
/// `rows` behind them.
template <int rows, int count>
__device__ __forceinline__ void slopes_of_keys(const Part<false>& part, const float* numbers,
                                               float (&s)[count][4], float (&along)[count][4]) {
  if (part.edges) hide<true>(part.attend, part.at, s);
  const float unit = part.attend.scale * log2_e;
#pragma unroll
  for (int n = 0; n < count; ++n) {
    const int column = fragment_column(n, 0);
    const auto lse = gpu::load<float2>(numbers + column), delta = gpu::load<float2>(numbers + rows + column);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const OfQuery query = i % 2 == 0 ? OfQuery{lse.x, delta.x} : OfQuery{lse.y, delta.y};
      const Slope slope = plain_slope(unit, query, {s[n][i], along[n][i]});
      s[n][i] = slope.p;
      along[n][i] = slope.ds;
    }
  }
}
template <int rows, int count>
__device__ __forceinline__ void slopes_of_keys(const Part<true>& part, const float* numbers,
                                               float (&s)[count][4], float (&along)[count][4]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float* bias = bias_of(part.attend, pair_at<true>(part.at, fragment_row(2 * half), 0));
#pragma unroll
    for (int n = 0; n < count; ++n)
#pragma unroll
      for (int i = 2 * half; i < 2 * half + 2; ++i) {
        const int column = fragment_column(n, i);
        const OfQuery query{numbers[column], numbers[rows + column]};
        const Slope slope = slope_of(part, 4 * n + i, query, bias + column, {s[n][i], along[n][i]});
        s[n][i] = slope.p;
        along[n][i] = slope.ds;
      }
  }
}

template <int eights>
__device__ __forceinline__ void put_tile(const AttentionBackward& job, const Heads& to, const Stretch& rows,
                                         const float (&sums)[eights][4], float scale) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = rows.first + fragment_row(2 * half);
    if (row >= rows.length) continue;
    const std::int64_t start = to.at(row, rows.b, rows.g, rows.r);
#pragma unroll
    for (int n = 0; n < eights; ++n) {
      const std::int64_t at = start + fragment_column(n, 0);
      const float x = scale * sums[n][2 * half], y = scale * sums[n][2 * half + 1];
      if (job.accumulate)
        put_pair(to.one, at, x + get(to.one, at), y + get(to.one, at + 1));
      else
        put_pair(to.one, at, x, y);
    }
  }
}

template <class Half, int d, int dv, bool everything>
__global__ void __launch_bounds__(tile_threads, d > 64 || everything ? 2 : 3)
    of_queries(AttentionBackward job) {
  constexpr int keys = rows_at_once(d), count = keys_at_once(d, everything);
  auto& shared = gpu::shared<Shared<d, dv>>();
  const Attend& a = job.attend;
  auto [at, last, number] = task_of(a, a.sq, a.heads);
  const int query0 = (last - number) * tile;  // those that see most begin first
  const int row0 = int(threadIdx.x) / 32 * 16;
  const Tiles tiles = key_tiles<keys>(a, query0);
  fetch(shared.own.left, a.q, {query0, a.sq, at.b, at.g, at.r});
  fetch(shared.own.right, job.dout, {query0, a.sq, at.b, at.g, at.r});
  const Stretch passing{tiles.first * keys, a.sk, at.b, at.g, 0};
  Source from_k = source_of(a.k, passing), from_v = source_of(a.v, passing);
  const auto fetch_keys = [&](int t) {
    fetch(shared.passing[t % 2].left, from_k);
    fetch(shared.passing[t % 2].right, from_v);
  };
  if (tiles.first < tiles.last) fetch_keys(tiles.first);
  gpu::commit_copies();
  OfQuery query[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    at.i = query0 + row0 + fragment_row(2 * half);
    query[half] = numbers_of(job, at);
  }
  float dq[d / 8][4] = {};
  OwnRows<d, held> own_q(shared.own.left, row0);
  OwnRows<dv, 0> own_dout(shared.own.right, row0);  // a thread has no registers for these too
  for (int t = tiles.first; t < tiles.last; ++t) {
    if (t + 1 < tiles.last) fetch_keys(t + 1);
    gpu::commit_copies();
    gpu::wait_copies<1>();
    __syncthreads();
    if (t == tiles.first) {
      own_q.load();
      own_dout.load();
    }
    auto& [k, v] = shared.passing[t % 2];
    const Ask ask = what_to_ask<tile, keys>(a, query0, t * keys);
    at.i = query0 + row0;
#pragma unroll 1
    for (int from = 0; from < keys; from += 8 * count) {
      at.j = t * keys + from;
      const auto part = part_at<everything, false, count>(a, at, ask);
      Scores<count> s, along;
      rows_by_rows<Half>(s, own_q, k, from);
      rows_by_rows<Half>(along, own_dout, v, from);
      slopes_of_queries(part, query, s, along);
      add_by_columns<Half, d>(dq, along, k, from);
    }
    __syncthreads();
  }
  gpu::wait_copies<0>();
  put_tile(job, job.dq, {query0 + row0, a.sq, at.b, at.g, at.r}, dq, a.scale);
}

/// Tiles of queries that pass by a block of keys: all that may see it, of one head after another. Which comes
/// next is counted, since a division takes as long as a tenth of a tile.
template <int d, int dv>
struct PassingQueries {
  static constexpr int queries = rows_at_once(d);
  struct Place {
    int first, head;  // the first of its queries
  };
  const AttentionBackward& job;
  const Pair at;         // row of the batch and group
  const int begin, end;  // queries that may see any of the keys
  Place next;
  Source q{}, dout{};

  __device__ __forceinline__ PassingQueries(const AttentionBackward& of, const Pair& place, const Tiles& all)
      : job(of),
        at(place),
        begin(all.first * queries),
        end(all.last * queries),
        next{begin, begin < end ? 0 : of.attend.heads} {}
  __device__ __forceinline__ bool more() const { return next.head < job.attend.heads; }
  __device__ __forceinline__ void fetch_next(Passing<d, dv>& to) {
    if (next.first == begin) {  // of another head
      const Stretch rows{begin, job.attend.sq, at.b, at.g, next.head};
      q = source_of(job.attend.q, rows);
      dout = source_of(job.dout, rows);
    }
    fetch(to.left, q);
    fetch(to.right, dout);
  }
  /// This thread's of the numbers of the next tile's queries, which are on their way.
  __device__ __forceinline__ float next_number() const {
    const int i = int(threadIdx.x);
    if (!more() || i >= 2 * queries) return 0.0F;
    const Pair query{at.b, at.g, next.head, next.first + i % queries, 0};
    if (query.i >= job.attend.sq) return i < queries ? INFINITY : 0.0F;
    return (i < queries ? job.power : job.delta)[job.attend.query_of(query)];
  }
  __device__ __forceinline__ void go_on() {
    next.first += queries;
    if (next.first >= end) next = {begin, next.head + 1};
  }
};

/// Whose gradients a kernel gives.
enum class Sums { both, keys, values };

// Everything is turned: rows are keys, columns queries.
template <class Half, int d, int dv, Sums which, bool everything>
__global__ void __launch_bounds__(tile_threads, 2) of_keys(AttentionBackward job) {
  constexpr int queries = rows_at_once(d), count = queries_at_once(d, everything);
  constexpr bool keys = which != Sums::values, values = which != Sums::keys;
  constexpr bool keeps = d <= 192;  // of wide heads a thread has no register for a number on its way
  auto& shared = gpu::shared<Shared<d, dv>>();
  const Attend& a = job.attend;
  auto [at, last, place] = task_of(a, a.sk, 1);
  const int key0 = place * tile;
  const int row0 = int(threadIdx.x) / 32 * 16;
  fetch(shared.own.left, a.k, {key0, a.sk, at.b, at.g, 0});
  if constexpr (keys) fetch(shared.own.right, a.v, {key0, a.sk, at.b, at.g, 0});
  PassingQueries<d, dv> passing(job, at, query_tiles<queries>(a, key0));
  if (passing.more()) passing.fetch_next(shared.passing[0]);
  shared.numbers[0][threadIdx.x] = passing.next_number();
  gpu::commit_copies();
  float dk[keys ? d / 8 : 1][4] = {}, of_values[values ? dv / 8 : 1][4] = {};
  OwnRows<d, held> own_k(shared.own.left, row0);
  OwnRows<dv, held> own_v(shared.own.right, row0);
  for (int t = 0; passing.more(); ++t) {
    const auto now = passing.next;
    passing.go_on();
    if (passing.more()) passing.fetch_next(shared.passing[(t + 1) % 2]);
    gpu::commit_copies();
    float& next = shared.numbers[(t + 1) % 2][threadIdx.x];
    const float number = passing.next_number();  // on its way while this tile is worked on,
    if constexpr (!keeps) next = number;         // or is waited for
    gpu::wait_copies<1>();
    __syncthreads();
    if (t == 0) {
      own_k.load();
      if constexpr (keys) own_v.load();
    }
    auto& [q, dout] = shared.passing[t % 2];
    at.j = key0 + row0;
    at.r = now.head;
    const Ask ask = what_to_ask<queries, tile>(a, now.first, key0);
#pragma unroll 1
    for (int from = 0; from < queries; from += 8 * count) {
      at.i = now.first + from;
      const auto part = part_at<everything, true, count>(a, at, ask);
      Scores<count> s, along = {};
      rows_by_rows<Half>(s, own_k, q, from);
      if constexpr (keys) rows_by_rows<Half>(along, own_v, dout, from);
      slopes_of_keys<queries>(part, shared.numbers[t % 2] + from, s, along);
      if constexpr (values) add_by_columns<Half, dv>(of_values, s, dout, from);
      if constexpr (keys) add_by_columns<Half, d>(dk, along, q, from);
    }
    if constexpr (keeps) next = number;
    __syncthreads();
  }
  gpu::wait_copies<0>();
  const Stretch rows{key0 + row0, a.sk, at.b, at.g, 0};
  if constexpr (keys) put_tile(job, job.dk, rows, dk, a.scale);
  if constexpr (values) put_tile(job, job.dv, rows, of_values, 1);
}

template <class Half, int d, int dv, bool everything>
void launch(Queue& queue, const AttentionBackward& job) {
  const Attend& a = job.attend;
  const std::int64_t queries = (a.sq + tile - 1) / tile, keys = (a.sk + tile - 1) / tile;
  constexpr std::size_t shared = sizeof(Shared<d, dv>);
  const gpu::Shape of_all_keys{keys * a.batch * a.groups, tile_threads, shared};
  if (queries > 0)
    gpu::launch(queue, {queries * a.batch * a.groups * a.heads, tile_threads, shared},
                of_queries<Half, d, dv, everything>, job);
  if (keys == 0) return;
  if constexpr (d > 128) {
    gpu::launch(queue, of_all_keys, of_keys<Half, d, dv, Sums::keys, everything>, job);
    gpu::launch(queue, of_all_keys, of_keys<Half, d, dv, Sums::values, everything>, job);
  } else {
    gpu::launch(queue, of_all_keys, of_keys<Half, d, dv, Sums::both, everything>, job);
  }
}

template <class Half>
void launch_of(Queue& queue, const AttentionBackward& job) {
  with_width(job.attend.q.one.width, job.attend.v.one.width, [&]<int d, int dv>(Width<d, dv>) {
    asks_everything(job.attend) ? launch<Half, d, dv, true>(queue, job)
                                : launch<Half, d, dv, false>(queue, job);
  });
}

}  // namespace

void attend_backward_fast(Queue& queue, const AttentionBackward& job) {
  job.attend.q.one.dtype == Dtype::bf16 ? launch_of<bf16>(queue, job) : launch_of<f16>(queue, job);
}

}  // namespace weft::cuda
