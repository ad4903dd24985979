// Attention of small floats backward, by tensor cores: one kernel for the gradients of queries, a block 64 of
// them, and one for those of keys and values, a block 64 of them. Scores are computed twice, and no sum is
// anybody else's, so nothing depends on who came first.
//
// p = exp(score - lse), k(ept) its dropout factor, delta = <dout, o>:
//   dv_j += p k dout,  ds = p (k <dout, v_j> - delta),  dq += scale ds k_j,  dk_j += scale ds q
#include "weft/backend/cuda/attention_fast.h"
#include "weft/backend/cuda/attention_tiles.h"

namespace weft::cuda {
namespace {

/// A block's own 64 rows of two tensors, and those that pass by, the next ones under way.
template <int d>
struct Shared {
  Tile<d> own[2], passing[2][2];
};

__device__ __forceinline__ std::int64_t query_of(const Attend& a, const Pair& at) {
  return (at.b * a.groups * a.heads + a.head_of(at)) * a.sq + at.i;
}

/// What slopes of a tile are made with.
struct Sloped {
  const AttentionBackward& job;
  Draw draw;
  bool plain;
};

/// From scores and <dout, v> of a pair to its probability (times what is kept) and slope.
template <bool turned>
__device__ __forceinline__ void slope(const Sloped& by, const Line<turned>& line, int column, float& score,
                                      float& along) {
  const AttentionBackward& job = by.job;
  const Attend& a = job.attend;
  const Pair at = line.pair(column);
  const std::int64_t query = at.i < a.sq ? query_of(a, at) : 0;
  const float lse = get(job.lse, start_of(job.lse, query));
  const bool seen = by.plain || (line.sees(column) && lse != -INFINITY);
  const float p = seen ? expf(score * a.scale + line.bias_at(column) - lse) : 0;
  const float kept = a.samples && p != 0 ? a.kept(by.draw, at) : 1;
  score = p * kept;
  along = p * (kept * along - job.delta[query]);
}

/// The same of a warp's 16 lines; at is of the first one and column 0.
template <bool turned, int count>
__device__ __forceinline__ void slopes(const Sloped& by, const Pair& at, float (&s)[count][4],
                                       float (&along)[count][4]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    Line<turned> line;
    if constexpr (turned)
      line = line_of_key(by.job.attend, {at.b, at.g, at.r, at.i, at.j + fragment_row(2 * half)});
    else
      line = line_of_query(by.job.attend, {at.b, at.g, at.r, at.i + fragment_row(2 * half), at.j});
#pragma unroll
    for (int n = 0; n < count; ++n)
#pragma unroll
      for (int i = 2 * half; i < 2 * half + 2; ++i)
        slope(by, line, fragment_column(n, i), s[n][i], along[n][i]);
  }
}

template <int d>
__device__ __forceinline__ void put_tile(const AttentionBackward& job, const Heads& to, const Stretch& rows,
                                         const float (&sums)[d / 8][4], float scale) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const std::int64_t row = rows.first + fragment_row(i);
    if (row >= rows.length) continue;
    const std::int64_t start = to.at(row, rows.b, rows.g, rows.r);
#pragma unroll
    for (int n = 0; n < d / 8; ++n)
      put_sum(to, start + fragment_column(n, i), scale * sums[n][i], job.accumulate);
  }
}

template <class Half, int d>
__global__ void __launch_bounds__(tile_threads) of_queries(AttentionBackward job) {
  auto& shared = gpu::shared<Shared<d>>();
  const Attend& a = job.attend;
  const std::int64_t blocks = (a.sq + tile - 1) / tile, head = blockIdx.x / blocks;
  Pair at{head / a.heads / a.groups, head / a.heads % a.groups, head % a.heads, 0, 0};
  const std::int64_t query0 = blockIdx.x % blocks * tile;
  const int row0 = int(threadIdx.x) / 32 * 16;
  const Tiles tiles = key_tiles(a, query0);
  fetch(shared.own[0], a.q, {query0, a.sq, at.b, at.g, at.r});
  fetch(shared.own[1], job.dout, {query0, a.sq, at.b, at.g, at.r});
  const auto fetch_keys = [&](std::int64_t t) {
    fetch(shared.passing[t % 2][0], a.k, {t * tile, a.sk, at.b, at.g, 0});
    fetch(shared.passing[t % 2][1], a.v, {t * tile, a.sk, at.b, at.g, 0});
  };
  if (tiles.first < tiles.last) fetch_keys(tiles.first);
  gpu::commit_copies();
  const Draw draw = a.drawn(at);
  float dq[d / 8][4] = {};
  for (std::int64_t t = tiles.first; t < tiles.last; ++t) {
    if (t + 1 < tiles.last) fetch_keys(t + 1);
    gpu::commit_copies();
    gpu::wait_copies<1>();
    __syncthreads();
    float s[8][4], along[8][4];
    rows_by_rows<Half, d>(s, shared.own[0], row0, shared.passing[t % 2][0]);
    rows_by_rows<Half, d>(along, shared.own[1], row0, shared.passing[t % 2][1]);
    const Sloped by{job, draw, plain(a, query0, t * tile)};
    at.i = query0 + row0;
    at.j = t * tile;
    slopes<false>(by, at, s, along);
    add_by_columns<Half, d>(dq, along, shared.passing[t % 2][0]);
    __syncthreads();
  }
  gpu::wait_copies<0>();
  put_tile<d>(job, job.dq, {query0 + row0, a.sq, at.b, at.g, at.r}, dq, a.scale);
}

// Everything is turned: rows are keys, columns queries, of wide heads half a tile at once: both sums of those
// are half of a thread's registers.
template <class Half, int d>
__global__ void __launch_bounds__(tile_threads) of_keys(AttentionBackward job) {
  constexpr int count = d == 128 ? 4 : 8;
  auto& shared = gpu::shared<Shared<d>>();
  const Attend& a = job.attend;
  const std::int64_t blocks = (a.sk + tile - 1) / tile, group = blockIdx.x / blocks;
  Pair at{group / a.groups, group % a.groups, 0, 0, 0};
  const std::int64_t key0 = blockIdx.x % blocks * tile;
  const int row0 = int(threadIdx.x) / 32 * 16;
  const Tiles tiles = query_tiles(a, key0);
  const std::int64_t each = tiles.last > tiles.first ? tiles.last - tiles.first : 0, total = each * a.heads;
  fetch(shared.own[0], a.k, {key0, a.sk, at.b, at.g, 0});
  fetch(shared.own[1], a.v, {key0, a.sk, at.b, at.g, 0});
  const auto fetch_queries = [&](std::int64_t t) {
    const Stretch rows{(tiles.first + t % each) * tile, a.sq, at.b, at.g, t / each};
    fetch(shared.passing[t % 2][0], a.q, rows);
    fetch(shared.passing[t % 2][1], job.dout, rows);
  };
  if (total > 0) fetch_queries(0);
  gpu::commit_copies();
  const Draw draw = a.drawn(at);
  float dk[d / 8][4] = {}, dv[d / 8][4] = {};
  for (std::int64_t t = 0; t < total; ++t) {
    if (t + 1 < total) fetch_queries(t + 1);
    gpu::commit_copies();
    gpu::wait_copies<1>();
    __syncthreads();
    auto& [q, dout] = shared.passing[t % 2];
    const std::int64_t query0 = (tiles.first + t % each) * tile;
    at.j = key0 + row0;
    at.r = t / each;
    const Sloped by{job, draw, plain(a, query0, key0)};
#pragma unroll 1
    for (int from = 0; from < tile; from += 8 * count) {
      float s[count][4], along[count][4];
      rows_by_rows<Half, d>(s, shared.own[0], row0, q, from);
      rows_by_rows<Half, d>(along, shared.own[1], row0, dout, from);
      at.i = query0 + from;
      slopes<true>(by, at, s, along);
      add_by_columns<Half, d>(dv, s, dout, from);
      add_by_columns<Half, d>(dk, along, q, from);
    }
    __syncthreads();
  }
  gpu::wait_copies<0>();
  const Stretch rows{key0 + row0, a.sk, at.b, at.g, 0};
  put_tile<d>(job, job.dk, rows, dk, a.scale);
  put_tile<d>(job, job.dv, rows, dv, 1);
}

template <class Half, int d>
void launch(cudaStream_t stream, const AttentionBackward& job) {
  const Attend& a = job.attend;
  const std::int64_t queries = (a.sq + tile - 1) / tile, keys = (a.sk + tile - 1) / tile;
  const std::size_t shared = sizeof(Shared<d>);
  if (queries > 0)
    gpu::launch(stream, {queries * a.batch * a.groups * a.heads, tile_threads, shared}, of_queries<Half, d>,
                job);
  if (keys > 0) gpu::launch(stream, {keys * a.batch * a.groups, tile_threads, shared}, of_keys<Half, d>, job);
}

}  // namespace

void attend_backward_fast(cudaStream_t stream, const AttentionBackward& job) {
  const bool wide = job.attend.q.one.width == 128;
  if (job.attend.q.one.dtype == Dtype::bf16)
    wide ? launch<bf16, 128>(stream, job) : launch<bf16, 64>(stream, job);
  else
    wide ? launch<f16, 128>(stream, job) : launch<f16, 64>(stream, job);
}

}  // namespace weft::cuda
