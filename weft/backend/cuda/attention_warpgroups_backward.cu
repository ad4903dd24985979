// Attention of small floats backward, by warpgroups: the sums of attention_backward_tiles.h in its order. A
// warpgroup has 64 queries or keys, and a block as many warpgroups as have registers.
// only: sm_90a
#include "weft/backend/cuda/attention_fast.h"
#include "weft/backend/cuda/attention_passing.h"
#include "weft/backend/cuda/attention_slopes.h"
#include "weft/backend/cuda/attention_warpgroups.h"

namespace weft::cuda {
namespace {

/// Of queries: a warpgroup works on a whole tile of keys at once, in eights. Of keys: on half a tile of
/// queries, since it has two sums; of narrow heads three blocks then have the registers of a multiprocessor.
constexpr int keys_at_once = tile / 8, queries_at_once = tile / 16;
constexpr int groups_of_queries = 2;
constexpr int blocks_of_queries(int d, Pairs pairs) { return d > 64 || pairs != Pairs::plain ? 1 : 2; }
constexpr int groups_of_keys(int d, Pairs pairs) { return d > 64 || pairs != Pairs::plain ? 2 : 1; }
constexpr int blocks_of_keys(int d, Pairs pairs) { return d > 64 || pairs != Pairs::plain ? 1 : 3; }

template <int d, int groups>
struct Shared {
  Own<d, d, groups * tile> own;
  Passing<d, d> passing[2];
  OfQuery numbers[2 * tile];  // of a block's own queries, or of those of two tiles that pass by
};

/// Scores of a warpgroup's own rows and of those that pass by, from a row on, and their <dout, v>.
template <class Half, int count, class Own, class Passing>
__device__ __forceinline__ void score(Scores<count>& s, Scores<count>& along, Own& own, Passing& with,
                                      int from) {
  gpu::begin_products();
  multiply_rows<Half>(s, own.left, with.left, from);
  multiply_rows<Half>(along, own.right, with.right, from);
  gpu::commit_products();
  gpu::wait_products<0>();
}

template <class Half, int d, Pairs pairs>
__global__ void __launch_bounds__(groups_of_queries* tile_threads, blocks_of_queries(d, pairs))
    of_queries(AttentionBackward job) {
  constexpr int groups = groups_of_queries, threads = groups * tile_threads, count = keys_at_once;
  if constexpr (!gpu::has_warpgroups) return;
  auto& shared = gpu::shared<Shared<d, groups>>();
  const Attend& a = job.attend;
  auto [at, last, number] = task_of<groups * tile>(a, a.sq, a.heads);
  const int query0 = (last - number) * groups * tile;  // those that see most begin first
  const int group0 = query0 + group_row();
  const Tiles tiles = key_tiles<tile, groups * tile>(a, query0);
  const int own_last =
      key_tiles<tile>(a, group0).last;  // at a window's other edge it is not worth a register
  fetch<threads>(shared.own.left, a.q, {query0, a.sq, at.b, at.g, at.r});
  fetch<threads>(shared.own.right, job.dout, {query0, a.sq, at.b, at.g, at.r});
  const Stretch passing{tiles.first * tile, a.sk, at.b, at.g, 0};
  auto from_k = source_of<threads>(a.k, passing), from_v = source_of<threads>(a.v, passing);
  const auto fetch_keys = [&](int t) {
    if (t < tiles.last) {
      fetch(shared.passing[t % 2].left, from_k, a.k);
      fetch(shared.passing[t % 2].right, from_v, a.v);
    }
    gpu::commit_copies();
  };
  fetch_keys(tiles.first);
  at.i = query0 + int(threadIdx.x);
  if (threadIdx.x < groups * tile) shared.numbers[threadIdx.x] = numbers_of(job, at);
  at.i = group0 + warp_row();
  const Draw draw = a.drawn(at);
  float dq[d / 8][4] = {};
  for (int t = tiles.first; t < tiles.last; ++t) {
    gpu::wait_copies<0>();
    gpu::show_products();
    __syncthreads();
    fetch_keys(t + 1);
    if (t >= own_last) continue;
    auto& now = shared.passing[t % 2];
    at.j = t * tile;
    const auto part = part_at<pairs, false, count>(a, draw, at);
    const Ask ask = what_to_ask<tile, tile>(a, at.i - warp_row(), at.j);
    Scores<count> s, along;
    score<Half>(s, along, shared.own, now, 0);
    const OfQuery* numbers = shared.numbers + group_row() + warp_row();
    const OfQuery query[2] = {numbers[fragment_row(0)], numbers[fragment_row(2)]};
    slopes_of_queries(part, ask, query, s, along);
    Halves<count> slopes;
    pack<Half>(slopes, along);
    gpu::begin_products();
    multiply_columns<Half, d>(dq, slopes, now.left, 0);
    gpu::commit_products();
    gpu::wait_products<0>();
  }
  gpu::wait_copies<0>();
  put_tile(job, job.dq, {at.i, a.sq, at.b, at.g, at.r}, dq, a.scale);
}

// Everything is turned: rows are keys, columns queries.
template <class Half, int d, Pairs pairs>
__global__ void __launch_bounds__(groups_of_keys(d, pairs) * tile_threads, blocks_of_keys(d, pairs))
    of_keys(AttentionBackward job) {
  constexpr int groups = groups_of_keys(d, pairs), threads = groups * tile_threads, count = queries_at_once;
  if constexpr (!gpu::has_warpgroups) return;
  auto& shared = gpu::shared<Shared<d, groups>>();
  const Attend& a = job.attend;
  auto [at, last, place] = task_of<groups * tile>(a, a.sk, 1);
  const int key0 = place * groups * tile, group0 = key0 + group_row();
  fetch<threads>(shared.own.left, a.k, {key0, a.sk, at.b, at.g, 0});
  fetch<threads>(shared.own.right, a.v, {key0, a.sk, at.b, at.g, 0});
  PassingQueries<d, d, threads> passing(job, at, query_tiles<tile, groups * tile>(a, key0));
  const Tiles own = query_tiles<tile>(a, group0);
  if (passing.more()) passing.fetch_next(shared.passing[0]);
  gpu::commit_copies();
  const int i = int(threadIdx.x);
  auto numbers = reinterpret_cast<float*>(shared.numbers);  // of two tiles
  if (i < 2 * tile) numbers[i] = passing.next_number();
  const Draw draw = a.drawn(at);
  float dk[d / 8][4] = {}, of_values[d / 8][4] = {};
  at.j = group0 + warp_row();
  for (int t = 0; passing.more(); ++t) {
    const auto now = passing.next;
    passing.go_on();
    gpu::wait_copies<0>();
    gpu::show_products();
    __syncthreads();
    if (passing.more()) passing.fetch_next(shared.passing[(t + 1) % 2]);
    gpu::commit_copies();
    const float number = passing.next_number();  // on its way while this tile is worked on
    if (own.have(now.first / tile)) {
      auto& with = shared.passing[t % 2];
      at.r = now.head;
      const Ask ask = what_to_ask<tile, tile>(a, now.first, group0);
#pragma unroll 1
      for (int from = 0; from < tile; from += 8 * count) {
        at.i = now.first + from;
        const auto part = part_at<pairs, true, count>(a, draw, at);
        Scores<count> s, along;
        score<Half>(s, along, shared.own, with, from);
        slopes_of_keys<tile>(part, ask, numbers + t % 2 * 2 * tile + from, s, along);
        Halves<count> probabilities, slopes;
        pack<Half>(probabilities, s);
        pack<Half>(slopes, along);
        gpu::begin_products();
        multiply_columns<Half, d>(of_values, probabilities, with.right, from);
        multiply_columns<Half, d>(dk, slopes, with.left, from);
        gpu::commit_products();
        gpu::wait_products<0>();
      }
    }
    if (i < 2 * tile) numbers[(t + 1) % 2 * 2 * tile + i] = number;
  }
  gpu::wait_copies<0>();
  const Stretch rows{at.j, a.sk, at.b, at.g, 0};
  put_tile(job, job.dk, rows, dk, a.scale);
  put_tile(job, job.dv, rows, of_values, 1);
}

template <class Half, int d, Pairs pairs>
void launch(Queue& queue, const AttentionBackward& job) {
  const Attend& a = job.attend;
  constexpr int of_q = groups_of_queries, of_k = groups_of_keys(d, pairs);
  const std::int64_t queries = (a.sq + of_q * tile - 1) / (of_q * tile),
                     keys = (a.sk + of_k * tile - 1) / (of_k * tile);
  if (queries > 0)
    gpu::launch(queue, {queries * a.batch * a.groups * a.heads, of_q * tile_threads, sizeof(Shared<d, of_q>)},
                of_queries<Half, d, pairs>, job);
  if (keys > 0)
    gpu::launch(queue, {keys * a.batch * a.groups, of_k * tile_threads, sizeof(Shared<d, of_k>)},
                of_keys<Half, d, pairs>, job);
}

template <class Half>
void launch_of(Queue& queue, const AttentionBackward& job) {
  with_pairs<128>(job.attend, [&]<Pairs pairs>(Knows<pairs>) {
    if constexpr (pairs != Pairs::any)
      if (widest(job.attend) > 64) return launch<Half, 128, pairs>(queue, job);
    launch<Half, 64, pairs>(queue, job);
  });
}

}  // namespace

bool warpgroups_attend_backward(const Attend& job) {
  return warpgroups_attend(job) && (widest(job) <= 64 || pairs_of(job) != Pairs::any);
}
void attend_backward_by_warpgroups(Queue& queue, const AttentionBackward& job) {
  job.attend.q.one.dtype == Dtype::bf16 ? launch_of<bf16>(queue, job) : launch_of<f16>(queue, job);
}

}  // namespace weft::cuda
