#include "weft/ops/attention_chunks.h"

namespace weft::ops {

Chunk::Chunk(const Attended& whole, const AttentionArgs& of_whole, ChunkRows q, ChunkRows k)
    : how(of_whole), queries(q), keys(k) {
  in = {of_queries(whole.q), of_keys(whole.k), of_keys(whole.v)};
  const std::int64_t further = queries.from - keys.from;  // than before, a query is from a key
  how.chunk = 0;
  how.diagonal += further;
  how.bias0 += further;
  how.query0 += queries.from;
  how.key0 += keys.from;
  if (!how.query_segments) return;
  how.query_segments = of_queries(how.query_segments, 1);
  how.key_segments = of_keys(how.key_segments, 1);
}

}  // namespace weft::ops
