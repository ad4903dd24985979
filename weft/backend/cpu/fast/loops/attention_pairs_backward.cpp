// Attention backward on pairs of bf16.
#include "weft/backend/cpu/fast/attention_backward.h"
#include "weft/backend/cpu/fast/attention_pairs.h"
#include "weft/backend/cpu/fast/loops/attention.h"

namespace weft::fast::WEFT_ISA {

namespace {

/// One key's numbers for sixteen queries.
struct Slope {
  Floats p, ds;
};

/// Thirty-two queries of a tile: their p and ds become bf16, to be multiplied.
struct Slopes {
  const Sweep& s;
  Index v;        // first query
  Index queries;  // of the tile
  float left = scale_left(s.job);
  Queries<2> lse = {{read(s.lse + v), read(s.lse + v + width)}};
  Queries<2> delta = {{read(s.delta + v), read(s.delta + v + width)}};

  template <bool plain>
  [[gnu::always_inline]] Slope of(Index key, int i) const {
    const Index at = key * tile_queries + v + i * width;
    const Floats p = exp2(added_product(read(s.scores + at), spread(left), -lse.of[i]));
    if constexpr (plain) return {p, p * (read(s.dscores + at) - delta.of[i]) * spread(s.job.scale)};
    const bool drops = s.job.dropout.wanted && v + i * width < queries;
    const Floats kept = drops ? read(s.factor + at) : spread(1.0F);
    Floats ds = p * added_product(read(s.dscores + at), kept, -delta.of[i]);
    if (s.job.cap > 0) ds = ds * slope_of(read(s.scores + at), spread(1 / cap_of(s.job)));
    if (s.job.dbias.wanted) write(s.dscores + at, ds);
    return {p * kept, ds * spread(s.job.scale)};
  }
};

struct Pairs {
  static Index depth(const Sweep& s) { return whole_depth(s.job.d); }
  static Index depth_of_value(const Sweep& s) { return whole_depth(s.job.d_value); }

  /// Where rows of queries go: along the lanes, two elements of a row to a word; and as rows, two queries to
  /// a word.
  struct Places {
    float *turned, *pairs;
    Index d;
  };
  static void load_rows(const Sweep& s, const AttentionRows& rows, Range queries, const Places& to) {
    const Copy whole = {queries.size(), whole_depth(queries.size()), to.d};
    const Index depth = whole_depth(to.d);
    copy_rows(s.rows, rows, s.query_offset(rows, queries.from), whole);
    pair_rows(to.pairs, s.rows, whole.filled, depth);
    transpose(to.turned, s.rows, depth / 2, {whole.filled, depth / 2});
  }
  static void load_queries(const Sweep& s, Range queries) {
    load_rows(s, s.job.q, queries, {s.q, s.q_rows, s.job.d});
    load_rows(s, s.job.dout, queries, {s.dout, s.dout_rows, s.job.d_value});
  }
  static void load_keys(const Sweep& s, Range keys) {
    const AttentionJob& job = s.job;
    const Index first = s.chunk.from + keys.from, to = keys.from * depth(s) / 2;
    const Index filled = whole_depth(keys.size());
    copy_rows(s.k + to, job.k, s.key_offset(job.k, first), {keys.size(), filled, job.d});
    copy_rows(s.v + keys.from * depth_of_value(s) / 2, job.v, s.key_offset(job.v, first),
              {keys.size(), filled, job.d_value});
    if (s.wants_queries()) pair_rows(s.k_pairs + to, s.k + to, filled, depth(s));
  }
  static Range reach(Range keys, Index tile) { return whole_depths(keys, tile); }
  static float before_bias(const AttentionJob& job) { return scale_before_bias(job); }
  static void score(const Sweep& s, const Meeting& at, Fetch* fetch) {
    const Index registers = whole_depth(at.queries) / width, half = at.skipped / 2;
    multiply_pairs<Start::zero>({s.scores, tile_queries}, {at.keys, registers, depth(s) / tile_depth},
                                PairRows{s.k + half * depth(s), depth(s)}, {s.q, tile_queries}, fetch);
    multiply_pairs<Start::zero>(
        {s.dscores, tile_queries}, {at.keys, registers, depth_of_value(s) / tile_depth},
        PairRows{s.v + half * depth_of_value(s), depth_of_value(s)}, {s.dout, tile_queries}, fetch);
    if (scales_at_once(s.job)) scale_scores(s.job, s.scores, at.keys);
  }
  static void differentiate(const Sweep& s, const Meeting& at) {
    const bool plain = !s.job.dropout.wanted && !s.job.dbias.wanted && s.job.cap == 0;
    for (Index v = 0; v < at.queries; v += tile_depth) {
      if (plain)
        differentiate<true>({s, v, at.queries}, at);
      else
        differentiate<false>({s, v, at.queries}, at);
    }
    if (!takes_columns && s.wants_queries()) turn_words(s.turned, s.ds_words, at);
  }
  template <bool plain>
  [[gnu::noinline]] static void differentiate(const Slopes& slopes, const Meeting& at) {
    constexpr Slope nothing[2] = {};
    Index k = 0;
    for (; k + 2 <= at.keys; k += 2) {
      const Slope first[2] = {slopes.of<plain>(k, 0), slopes.of<plain>(k, 1)};
      const Slope second[2] = {slopes.of<plain>(k + 1, 0), slopes.of<plain>(k + 1, 1)};
      put(slopes, k, first, second);
    }
    if (k < at.keys) {
      const Slope last[2] = {slopes.of<plain>(k, 0), slopes.of<plain>(k, 1)};
      put(slopes, k, last, nothing);
      k += 2;
    }
    for (; k < whole_depth(at.keys); k += 2) put(slopes, k, nothing, nothing);
  }
  [[gnu::always_inline]] static void put(const Slopes& to, Index k, const Slope (&first)[2],
                                         const Slope (&second)[2]) {
    constexpr Index row = tile_queries / 2;
    const Index at = k * row + to.v / 2;
    write<Words>(to.s.p_rows + at, row_of_bf16(first[0].p, first[1].p));
    write<Words>(to.s.p_rows + at + row, row_of_bf16(second[0].p, second[1].p));
    write<Words>(to.s.ds_rows + at, row_of_bf16(first[0].ds, first[1].ds));
    write<Words>(to.s.ds_rows + at + row, row_of_bf16(second[0].ds, second[1].ds));
    float* words = to.s.ds_words + k * row + to.v;
    write<Words>(words, pairs_of(first[0].ds, second[0].ds));
    write<Words>(words + width, pairs_of(first[1].ds, second[1].ds));
  }
  static void settle(const Sweep&, const Meeting&) {}
  static void add_to_keys(const Sweep& s, const Meeting& at, float* dk, float* dv) {
    const Index depths = whole_depth(at.queries) / tile_depth;
    multiply_pairs<Start::more>({dv, s.step}, {at.keys, s.padded_value / width, depths},
                                PairRows{s.p_rows, tile_queries}, {s.dout_rows, depth_of_value(s)});
    multiply_pairs<Start::more>({dk, s.step}, {at.keys, s.padded / width, depths},
                                PairRows{s.ds_rows, tile_queries}, {s.q_rows, depth(s)});
  }
  static void add_to_queries(const Sweep& s, const Meeting& at, float* dq) {
    const Extent size = {at.queries, s.padded / width, whole_depth(at.keys) / tile_depth};
    multiply_pairs<Start::more>({dq, s.step}, size, by_query(takes_columns ? s.ds_words : s.turned),
                                {s.k_pairs + at.skipped / 2 * depth(s), depth(s)});
  }
};

}  // namespace

void attention_backward_pairs(const AttentionJob& job, AttentionShare share, const AttentionTask& task,
                              float* workspace) {
  [[maybe_unused]] const Tiles tiles{};
  backward<Pairs>(job, share, task, workspace);
}

}  // namespace weft::fast::WEFT_ISA
