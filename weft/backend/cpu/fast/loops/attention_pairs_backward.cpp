// Attention backward on pairs of bf16.
#include "weft/backend/cpu/fast/attention_backward.h"
#include "weft/backend/cpu/fast/attention_pairs.h"
#include "weft/backend/cpu/fast/loops/attention.h"

namespace weft::fast::WEFT_ISA {

namespace {

struct Pairs {
  static Index depth(const Sweep& s) { return whole_depth(s.job.d); }

  /// Queries along the lanes, two elements of a row to a word; and as rows, two queries to a word.
  static void load_rows(const Sweep& s, const AttentionRows& rows, Range queries, float* turned,
                        float* pairs) {
    const Copy whole = {queries.size(), whole_depth(queries.size()), s.job.d};
    copy_rows(s.rows, rows, s.query_offset(rows, queries.from), whole);
    pair_rows(pairs, s.rows, whole.filled, depth(s));
    transpose(turned, s.rows, depth(s) / 2, {queries.size(), depth(s) / 2});
  }
  static void load_queries(const Sweep& s, Range queries) {
    load_rows(s, s.job.q, queries, s.q, s.q_rows);
    load_rows(s, s.job.dout, queries, s.dout, s.dout_rows);
  }
  static void load_keys(const Sweep& s) {
    const AttentionJob& job = s.job;
    const Copy whole = {s.chunk.size(), whole_depth(s.chunk.size()), job.d};
    copy_rows(s.k, job.k, s.key_offset(job.k, s.chunk.from), whole);
    copy_rows(s.v, job.v, s.key_offset(job.v, s.chunk.from), whole);
    if (s.wants_queries()) pair_rows(s.k_pairs, s.k, whole.filled, depth(s));
  }
  static Range reach(Range keys, Index tile) { return whole_depths(keys, tile); }
  static void score(const Sweep& s, const Meeting& at, Fetch* fetch) {
    const Index skipped = at.skipped * depth(s) / 2;
    const Extent size = {at.keys, at.registers(), depth(s) / tile_depth};
    multiply_pairs<Start::zero>({s.scores, tile_queries}, size, {s.k + skipped, depth(s)},
                                {s.q, tile_queries}, fetch);
    multiply_pairs<Start::zero>({s.dscores, tile_queries}, size, {s.v + skipped, depth(s)},
                                {s.dout, tile_queries}, fetch);
    if (scales_at_once(s.job)) scale_scores(s.job, s.scores, at.keys);
  }
  static float left(const AttentionJob& job) { return scale_left(job); }
  /// p and ds as rows in their place, and ds turned.
  static void settle(const Sweep& s, const Meeting& at) {
    fill_keys(s.scores, at.keys);
    fill_keys(s.dscores, at.keys);
    if (s.wants_queries()) turn_scores(s.turned, s.dscores, at);
    if (!s.wants_keys()) return;
    shorten_scores(s.scores, at.keys);
    shorten_scores(s.dscores, at.keys);
  }
  static void add_to_keys(const Sweep& s, const Meeting& at, float* dk, float* dv) {
    const Extent size = {at.keys, s.padded / width, whole_depth(at.queries) / tile_depth};
    multiply_pairs<Start::more>({dv, s.step}, size, {s.scores, tile_queries}, {s.dout_rows, depth(s)});
    multiply_pairs<Start::more>({dk, s.step}, size, {s.dscores, tile_queries}, {s.q_rows, depth(s)});
  }
  static void add_to_queries(const Sweep& s, const Meeting& at, float* dq) {
    const Extent size = {at.queries, s.padded / width, whole_depth(at.keys) / tile_depth};
    multiply_pairs<Start::more>({dq, s.step}, size, {s.turned, tile_keys},
                                {s.k_pairs + at.skipped / 2 * depth(s), depth(s)});
  }
};

}  // namespace

void attention_backward_pairs(const AttentionJob& job, AttentionShare share, const AttentionTask& task,
                              float* workspace) {
  const Tiles tiles;
  backward<Pairs>(job, share, task, workspace);
}

}  // namespace weft::fast::WEFT_ISA
