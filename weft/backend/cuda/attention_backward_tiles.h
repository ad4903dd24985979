// Attention of small floats backward, by tensor cores: one kernel for the gradients of queries, a block 64 of
// them, and one for those of keys and values, a block 64 of them; of wide heads, and under caps, one for
// each, since a thread has no registers for both sums. Scores are computed twice (three times), and no sum is
// anybody else's, so nothing depends on who came first.
//
// p = exp(score - lse), k(ept) its dropout factor, delta = <dout, o>:
//   dv_j += p k dout,  ds = p (k <dout, v_j> - delta),  dq += scale ds k_j,  dk_j += scale ds q
#pragma once

#include "weft/backend/cuda/attention_fast.h"
#include "weft/backend/cuda/attention_lines.h"
#include "weft/backend/cuda/attention_passing.h"
#include "weft/backend/cuda/attention_slopes.h"

namespace weft::cuda {
namespace backward_by_tiles {

/// How many rows that pass by are worked on at once, in eights: scores and slopes of half a tile, or of a
/// quarter, are what a thread has registers for beside the sums. With more, nvcc spills, for Blackwell
/// sooner.
constexpr int keys_at_once(int d, Pairs pairs) {
  return d > 192 || (blackwell && d == 64 && pairs == Pairs::plain) ? 2 : 4;
}
constexpr int queries_at_once(int d, Pairs pairs) {
  return d > 192 || (pairs != Pairs::plain && d == 128) || (blackwell && (d == 128 || pairs != Pairs::plain))
             ? 2
             : 4;
}
/// Those that pass by, the next ones under way. Where queries pass by, numbers are of each: first those that
/// make a probability of its scores, then its corrections.
template <int d, int dv>
struct Shared {
  Own<d, dv> own;
  Passing<d, dv> passing[2];
  float numbers[2][tile_threads];
};

/// The same where slopes are added up by distance too.
template <int d, int dv>
struct SharedWithSlopes : Shared<d, dv> {
  Slanted<keys_at_once(d, Pairs::any)> slopes;
};
template <int d, int dv, bool biased>
using SharedOfQueries = std::conditional_t<biased, SharedWithSlopes<d, dv>, Shared<d, dv>>;

/// Heads so wide that a block's own rows stay in registers.
constexpr int held = 64;

template <class Half, int d, int dv, Pairs pairs, bool biased = false>
__global__ void __launch_bounds__(tile_threads, blocks_at_once(d, pairs)) of_queries(AttentionBackward job) {
  constexpr int keys = rows_at_once(d), count = keys_at_once(d, pairs);
  auto& shared = gpu::shared<SharedOfQueries<d, dv, biased>>();
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
    fetch(shared.passing[t % 2].left, from_k, a.k);
    fetch(shared.passing[t % 2].right, from_v, a.v);
  };
  if (tiles.first < tiles.last) fetch_keys(tiles.first);
  gpu::commit_copies();
  OfQuery query[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    at.i = query0 + row0 + fragment_row(2 * half);
    query[half] = numbers_of(job, at);
  }
  float* line = biased ? begin_line(job, at, last - number, last + 1) : nullptr;
  const Draw draw = a.drawn(at);
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
      const auto part = part_at<pairs, false, count>(a, draw, at);
      Scores<count> s, along;
      rows_by_rows<Half>(s, own_q, k, from);
      rows_by_rows<Half>(along, own_dout, v, from);
      slopes_of_queries(part, ask, query, s, along);
      if constexpr (biased) add_by_distance(line, a.sk - 1 - at.j, shared.slopes, row0, along);
      add_by_columns<Half, d>(dq, along, k, from);
    }
    __syncthreads();
  }
  gpu::wait_copies<0>();
  put_tile(job, job.dq, {query0 + row0, a.sq, at.b, at.g, at.r}, dq, a.scale);
}

/// Whose gradients a kernel gives.
enum class Sums { both, keys, values };

// Everything is turned: rows are keys, columns queries.
template <class Half, int d, int dv, Sums which, Pairs pairs>
__global__ void __launch_bounds__(tile_threads, 2) of_keys(AttentionBackward job) {
  constexpr int queries = rows_at_once(d), count = queries_at_once(d, pairs);
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
  const Draw draw = a.drawn(at);
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
      Scores<count> s, along = {};
      rows_by_rows<Half>(s, own_k, q, from);
      if constexpr (keys) rows_by_rows<Half>(along, own_v, dout, from);
      const auto part = part_at<pairs, true, count>(a, draw, at);
      slopes_of_keys<queries>(part, ask, shared.numbers[t % 2] + from, s, along);
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

template <class Half, int d, int dv, Pairs pairs>
void launch(Queue& queue, const AttentionBackward& job) {
  const Attend& a = job.attend;
  const std::int64_t queries = (a.sq + tile - 1) / tile, keys = (a.sk + tile - 1) / tile;
  constexpr std::size_t shared = sizeof(Shared<d, dv>);
  const gpu::Shape of_all_keys{keys * a.batch * a.groups, tile_threads, shared};
  const std::int64_t of_all_queries = queries * a.batch * a.groups * a.heads;
  constexpr bool any = pairs == Pairs::any;
  if (any && job.lines && queries > 0)
    gpu::launch(queue, {of_all_queries, tile_threads, sizeof(SharedWithSlopes<d, dv>)},
                of_queries<Half, d, dv, pairs, any>, job);
  else if (queries > 0)
    gpu::launch(queue, {of_all_queries, tile_threads, shared}, of_queries<Half, d, dv, pairs>, job);
  if (keys == 0) return;
  if constexpr (d > 128 || pairs == Pairs::capped) {
    gpu::launch(queue, of_all_keys, of_keys<Half, d, dv, Sums::keys, pairs>, job);
    gpu::launch(queue, of_all_keys, of_keys<Half, d, dv, Sums::values, pairs>, job);
  } else {
    gpu::launch(queue, of_all_keys, of_keys<Half, d, dv, Sums::both, pairs>, job);
  }
}

template <class Half, int d, int dv>
void launch_of(Queue& queue, const AttentionBackward& job) {
  with_pairs<d, may_be_capped(d)>(job.attend,
                                  [&]<Pairs pairs>(Knows<pairs>) { launch<Half, d, dv, pairs>(queue, job); });
}

}  // namespace backward_by_tiles

template <int d, int dv>
void attend_backward_by_tiles(Queue& queue, const AttentionBackward& job) {
  using namespace backward_by_tiles;
  job.attend.q.one.dtype == Dtype::bf16 ? launch_of<bf16, d, dv>(queue, job)
                                        : launch_of<f16, d, dv>(queue, job);
}

}  // namespace weft::cuda
