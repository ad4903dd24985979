// Attention forward on pairs of bf16.
#include "weft/backend/cpu/fast/attention_forward.h"
#include "weft/backend/cpu/fast/attention_pairs.h"
#include "weft/backend/cpu/fast/loops/attention.h"

namespace weft::fast::WEFT_ISA {

namespace {

void shrink_rows(const Target& o, Index rows, Index columns) {
  for (Index i = 0; i < rows; ++i) {
    if (o.factor[i] == 1) continue;
    for (Index c = 0; c < columns; c += width)
      write(o.at + i * o.step + c, read(o.at + i * o.step + c) * spread(o.factor[i]));
  }
}

struct Pairs {
  static Index depth(const Stripe& s) { return whole_depth(s.job.d); }
  static Index depth_of_value(const Stripe& s) { return whole_depth(s.job.d_value); }
  static float* q_of(const Stripe& s, Index t) { return s.q + t * tile_queries * depth(s) / 2; }

  static void load_queries(const Stripe& s, Index t) {
    const Range here = s.queries(t);
    copy_rows(s.rows, s.job.q, s.query_offset(s.job.q, here.from), {here.size(), here.size(), s.job.d});
    transpose(q_of(s, t), s.rows, depth(s) / 2, {here.size(), depth(s) / 2});
  }
  static void load_keys(const Stripe& s, Range tile) {
    const AttentionJob& job = s.job;
    const Index filled = whole_depth(tile.size());
    // Values pass through the keys' place.
    copy_rows(s.k, job.v, s.key_offset(job.v, tile.from), {tile.size(), filled, job.d_value});
    pair_rows(s.v, s.k, filled, depth_of_value(s));
    copy_rows(s.k, job.k, s.key_offset(job.k, tile.from), {tile.size(), filled, job.d});
  }
  static Range reach(Range keys, Index tile) { return whole_depths(keys, tile); }
  static void score(const Stripe& s, Index t, const Meeting& at, Fetch* fetch) {
    const Extent size = {at.keys, at.registers(), depth(s) / tile_depth};
    multiply_pairs<Start::zero>({s.scores, tile_queries}, size,
                                PairRows{s.k + at.skipped * depth(s) / 2, depth(s)},
                                {q_of(s, t), tile_queries}, fetch);
    if (scales_at_once(s.job)) scale_scores(s.job, s.scores, at.keys);
  }
  static float left(const AttentionJob& job) { return scale_left(job); }
  static float before_bias(const AttentionJob& job) { return scale_before_bias(job); }
  static void add(const Stripe& s, Index t, const Meeting& at) {
    fill_keys(s.scores, at.keys);
    if constexpr (takes_columns)
      pair_scores(s.turned, s.scores, at);
    else
      turn_scores(s.turned, s.scores, at);
    shrink_rows(s.o_of(t), at.queries, s.padded_value);
    const Extent size = {at.queries, s.padded_value / width, whole_depth(at.keys) / tile_depth};
    multiply_pairs<Start::more>(s.o_of(t), size, by_query(s.turned),
                                {s.v + at.skipped / 2 * depth_of_value(s), depth_of_value(s)});
  }
};

}  // namespace

void attention_forward_pairs(const AttentionJob& job, Index row, Index head, Index from, float* workspace) {
  [[maybe_unused]] const Tiles tiles{};
  forward<Pairs>(job, {row, head, {from, least(from + job.stripe, job.sq)}}, workspace);
}

}  // namespace weft::fast::WEFT_ISA
