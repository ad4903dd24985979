// Rows that a block of attention backward has, and those that pass by it.
#pragma once

#include "weft/backend/cuda/attention_fast.h"
#include "weft/backend/cuda/attention_tiles.h"

namespace weft::cuda {

/// Rows that pass by at once: of wide heads so few that every GPU has the memory for a block.
constexpr int rows_at_once(int d) { return d > 192 ? 16 : d > 128 ? 32 : 64; }

/// A block's own rows of two tensors.
template <int d, int dv, int rows = tile>
struct Own {
  Tile<d, rows> left;    // queries or keys
  Tile<dv, rows> right;  // dout or values
};
template <int d, int dv>
struct Passing {
  Tile<d, rows_at_once(d)> left;
  Tile<dv, rows_at_once(d)> right;
};

/// Tiles of queries that pass by a block of keys: all that may see it, of one head after another. Which comes
/// next is counted, since a division takes as long as a tenth of a tile.
template <int d, int dv, int threads = tile_threads>
struct PassingQueries {
  static constexpr int queries = rows_at_once(d);
  struct Place {
    int first, head;  // the first of its queries
  };
  const AttentionBackward& job;
  const Pair at;         // row of the batch and group
  const int begin, end;  // queries that may see any of the keys
  Place next;
  Source<threads> q{}, dout{};

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
      q = source_of<threads>(job.attend.q, rows);
      dout = source_of<threads>(job.dout, rows);
    }
    fetch(to.left, q, job.attend.q);
    fetch(to.right, dout, job.dout);
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

}  // namespace weft::cuda
