// Attention of small floats forward, by tensor cores: a block takes 64 queries of a head, a warp 16 of them;
// keys and values pass by in tiles, the next one under way while this one is used. No scores in memory.
//
//   s = q k^T scale + bias,  m' = max(m, s),  o' = o exp(m - m') + exp(s - m') kept v,  l' = l exp(m - m') +
//   sum
#include "weft/backend/cuda/attention_fast.h"
#include "weft/backend/cuda/attention_softmax.h"

namespace weft::cuda {
namespace {

/// Keys that pass by at once: of wide heads as many as two blocks have memory and threads registers for.
constexpr int keys_at_once(int d) { return d > 192 ? 16 : d > 128 ? 32 : 64; }

template <int d, int dv, int keys>
struct Shared {
  Tile<d> q;
  Tile<d, keys> k[2];
  Tile<dv, keys> v[2];
};

template <class Half, int d, int dv, Pairs pairs>
__global__ void __launch_bounds__(tile_threads, blocks_at_once(d, pairs)) forward(FastForward job) {
  constexpr int keys = keys_at_once(d);
  auto& shared = gpu::shared<Shared<d, dv, keys>>();
  const Attend& a = job.attend;
  auto [at, last, number] = task_of(a, a.sq, a.heads);
  const int query0 = (last - number) * tile;  // those that see most begin first
  const int row0 = int(threadIdx.x) / 32 * 16;
  const Tiles tiles = key_tiles<keys>(a, query0);
  fetch(shared.q, a.q, {query0, a.sq, at.b, at.g, at.r});
  const Stretch passing{tiles.first * keys, a.sk, at.b, at.g, 0};
  Source k = source_of(a.k, passing), v = source_of(a.v, passing);
  const auto fetch_keys = [&](int t) {
    fetch(shared.k[t % 2], k, a.k);
    fetch(shared.v[t % 2], v, a.v);
  };
  if (tiles.first < tiles.last) fetch_keys(tiles.first);
  gpu::commit_copies();
  float o[dv / 8][4] = {};
  Softmax state;
  OwnRows<d, 0> own(shared.q, row0);
  const float unit = unit_of<pairs>(a);
  const Draw draw = a.drawn(at);
  for (int t = tiles.first; t < tiles.last; ++t) {
    if (t + 1 < tiles.last) fetch_keys(t + 1);
    gpu::commit_copies();
    gpu::wait_copies<1>();
    __syncthreads();
    if (t == tiles.first) own.load();
    at.i = query0 + row0;
    at.j = t * keys;
    float s[keys / 8][4];
    rows_by_rows<Half>(s, own, shared.k[t % 2]);
    const auto part = part_at<pairs, false, keys / 8>(a, draw, at);
    finish_scores(part, what_to_ask<tile, keys>(a, query0, t * keys), s);
    shrink_rows(soften(state, unit, s), o);
    drop(part, s);
    add_by_columns<Half, dv>(o, s, shared.v[t % 2]);
    __syncthreads();
  }
  gpu::wait_copies<0>();
  at.i = query0 + row0;
  put_rows(job, at, state, o);
}

template <class Half, int d, int dv, Pairs pairs>
void launch(Queue& queue, const FastForward& job) {
  const Attend& a = job.attend;
  const std::int64_t blocks = std::int64_t(a.sq + tile - 1) / tile * a.batch * a.groups * a.heads;
  gpu::launch(queue, {blocks, tile_threads, sizeof(Shared<d, dv, keys_at_once(d)>)},
              forward<Half, d, dv, pairs>, job);
}

template <class Half>
void launch_of(Queue& queue, const FastForward& job) {
  const Attend& a = job.attend;
  with_width(a, [&]<int d, int dv>(Width<d, dv>) {
    with_pairs<d, may_be_capped(d)>(
        a, [&]<Pairs pairs>(Knows<pairs>) { launch<Half, d, dv, pairs>(queue, job); });
  });
}

}  // namespace

void attend_fast(Queue& queue, const FastForward& job) {
  job.attend.q.one.dtype == Dtype::bf16 ? launch_of<bf16>(queue, job) : launch_of<f16>(queue, job);
}

}  // namespace weft::cuda
