// Attention of small floats forward, by warpgroups: a block takes 128 queries of a head, a warpgroup 64 of
// them. Scores of the next keys and the sums of these values are computed while threads make probabilities:
// of a tile of keys the scores come first, and its values are summed in the turn behind, when the next scores
// are under way.
//
//   s = q k^T scale + bias,  m' = max(m, s),  o' = o exp(m - m') + exp(s - m') kept v,  l' = l exp(m - m') +
//   sum
// only: sm_90a
#include "weft/backend/cuda/attention_warpgroups.h"

#include "weft/backend/cuda/attention_fast.h"
#include "weft/backend/cuda/attention_softmax.h"
#include "weft/backend/gpus.h"

namespace weft::cuda {
namespace {

constexpr int groups = 2, threads = groups * tile_threads, queries = groups * tile;

/// Keys come a turn before their values.
template <int d>
struct Shared {
  Tile<d, queries> q;
  Tile<d> k[2], v[2];
};

/// What passes by a block, and where it goes.
template <int d>
struct Keys {
  const Attend& a;
  Shared<d>& shared;
  Tiles tiles;
  Source<threads> k, v;

  /// What turn t, which scores tile t and sums the values of the one before, will need.
  __device__ __forceinline__ void fetch_for(int t) {
    if (t < tiles.last) fetch(shared.k[t & 1], k, a.k);
    if (t > tiles.first && t <= tiles.last) fetch(shared.v[(t - 1) & 1], v, a.v);
    gpu::commit_copies();
  }
};

/// A warpgroup's part of the work.
template <class Half, int d, Pairs pairs>
struct Queries {
  const Attend& a;
  Shared<d>& shared;
  Pair at;  // of the first of the warp's queries
  float unit;
  Draw draw;
  Softmax state = {};
  float o[d / 8][4] = {};
  Halves<tile / 8> p = {};

  /// Scores of tile t, and the sums of values of the one before.
  template <bool scores, bool values>
  __device__ __forceinline__ void turn(int t) {
    at.j = t * tile;
    const auto part = part_at<pairs, false, tile / 8>(a, draw, at);
    float s[tile / 8][4];
    gpu::begin_products();
    if constexpr (scores) {
      multiply_rows<Half>(s, shared.q, shared.k[t & 1]);
      gpu::commit_products();
    }
    if constexpr (values) {
      multiply_columns<Half, d>(o, p, shared.v[(t - 1) & 1]);
      gpu::commit_products();
    }
    gpu::wait_products<scores && values ? 1 : 0>();
    if constexpr (scores) {
      finish_scores(part, what_to_ask<tile, tile>(a, at.i - warp_row(), at.j), s);
      const Shrink shrink = soften(state, unit, s);
      drop(part, s);
      if constexpr (values) {
        gpu::before_what_follows(state.sum[0] + state.sum[1]);
        gpu::wait_products<0>();
      }
      shrink_rows(shrink, o);
      pack<Half>(p, s);
    }
  }
};

template <class Half, int d, Pairs pairs>
__global__ void __launch_bounds__(threads, d > 64 || pairs != Pairs::plain ? 1 : 2) forward(FastForward job) {
  if constexpr (!gpu::has_warpgroups) return;
  auto& shared = gpu::shared<Shared<d>>();
  const Attend& a = job.attend;
  auto [at, last, number] = task_of<queries>(a, a.sq, a.heads);
  const int query0 = (last - number) * queries;  // those that see most begin first
  const Tiles tiles = key_tiles<tile, queries>(a, query0), own = key_tiles<tile>(a, query0 + group_row());
  fetch<threads>(shared.q, a.q, {query0, a.sq, at.b, at.g, at.r});
  const Stretch passing{tiles.first * tile, a.sk, at.b, at.g, 0};
  Keys<d> keys{a, shared, tiles, source_of<threads>(a.k, passing), source_of<threads>(a.v, passing)};
  keys.fetch_for(tiles.first);
  at.i = query0 + group_row() + warp_row();
  Queries<Half, d, pairs> mine{a, shared, at, unit_of<pairs>(a), a.drawn(at)};
  for (int t = tiles.first; t <= tiles.last; ++t) {
    gpu::wait_copies<0>();
    gpu::show_products();
    __syncthreads();
    keys.fetch_for(t + 1);
    if (own.have(t) && t > own.first)
      mine.template turn<true, true>(t);
    else if (own.have(t))
      mine.template turn<true, false>(t);
    else if (own.have(t - 1))
      mine.template turn<false, true>(t);
  }
  gpu::wait_copies<0>();
  put_rows(job, at, mine.state, mine.o);
}

template <class Half, int d>
void launch(Queue& queue, const FastForward& job) {
  const Attend& a = job.attend;
  const std::int64_t blocks = std::int64_t(a.sq + queries - 1) / queries * a.batch * a.groups * a.heads;
  const gpu::Shape shape{blocks, threads, sizeof(Shared<d>)};
  with_pairs<d>(a,
                [&]<Pairs pairs>(Knows<pairs>) { gpu::launch(queue, shape, forward<Half, d, pairs>, job); });
}

template <class Half>
void launch_of(Queue& queue, const FastForward& job) {
  widest(job.attend) <= 64 ? launch<Half, 64>(queue, job) : launch<Half, 128>(queue, job);
}

}  // namespace

bool warpgroups_attend(const Attend& job) { return widest(job) <= widest_warpgroup_head && !(job.cap > 0); }
void attend_by_warpgroups(Queue& queue, const FastForward& job) {
  job.attend.q.one.dtype == Dtype::bf16 ? launch_of<bf16>(queue, job) : launch_of<f16>(queue, job);
}

}  // namespace weft::cuda
