// Attention within chunks of a sequence is attention of each chunk by itself: what else nobody sees is not
// computed, and kernels know of no chunks.
#pragma once

#include <algorithm>

#include "weft/tensor/args.h"

namespace weft::ops {

/// Rows of one chunk that are here, [from, from + count).
struct ChunkRows {
  std::int64_t from = 0, count = 0;
};

/// The queries and keys of one chunk; either may be none.
struct Chunk {
  Attended in;
  AttentionArgs how;
  ChunkRows queries, keys;

  Chunk(const Attended& whole, const AttentionArgs& of_whole, ChunkRows q, ChunkRows k);

  Tensor of_queries(const Tensor& x, int dim = 0) const { return x.slice(dim, queries.from, queries.count); }
  Tensor of_keys(const Tensor& x, int dim = 0) const { return x.slice(dim, keys.from, keys.count); }
  AttentionOut of(const AttentionOut& out) const {
    return {of_queries(out.o), of_queries(out.lse, 2), out.greatest ? of_queries(out.greatest, 2) : Tensor()};
  }
  AttentionGrads of(const AttentionGrads& grads) const {
    AttentionGrads some = grads;
    some.dq = of_queries(grads.dq);
    some.dk = of_keys(grads.dk);
    some.dv = of_keys(grads.dv);
    return some;
  }
};

/// What is attended, and how.
struct InChunks {
  const Attended& in;
  const AttentionArgs& how;

  /// Of rows that begin at a place of the sequence, those of a chunk.
  ChunkRows rows(std::int64_t chunk, std::int64_t place, std::int64_t count) const {
    const std::int64_t from = std::clamp(chunk * how.chunk - place, std::int64_t{0}, count);
    return {from, std::clamp((chunk + 1) * how.chunk - place, std::int64_t{0}, count) - from};
  }
};

/// act(Chunk) for all chunks that have queries or keys here, in order.
template <class Act>
void each_chunk(const InChunks& all, const Act& act) {
  const auto& [in, how] = all;
  const std::int64_t sq = in.q.dim(0), sk = in.k.dim(0);
  const std::int64_t end = std::max(how.query0 + sq, how.key0 + sk);
  for (std::int64_t chunk = std::min(how.query0, how.key0) / how.chunk; chunk * how.chunk < end; ++chunk) {
    const ChunkRows queries = all.rows(chunk, how.query0, sq), keys = all.rows(chunk, how.key0, sk);
    if (queries.count > 0 || keys.count > 0) act(Chunk(in, how, queries, keys));
  }
}

}  // namespace weft::ops
