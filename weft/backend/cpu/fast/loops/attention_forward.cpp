// Attention forward on numbers widened to f32; and how parts over different keys are merged.
#include "weft/backend/cpu/fast/attention_forward.h"

#include "weft/backend/cpu/fast/loops/attention.h"

namespace weft::fast::WEFT_ISA {

namespace {

/// Queries are scaled to powers of two and turned, so that they lie along the lanes.
struct Floating {
  static void load_queries(const Stripe& s, Index t) {
    const Range here = s.queries(t);
    widen_rows(s.rows, s.job.q, s.query_offset(s.job.q, here.from),
               {here.size(), s.job.d, s.step, s.job.scale * log2_e});
    transpose(s.q + t * s.padded * tile_queries, s.rows, s.step, {here.size(), s.padded});
  }
  static void load_keys(const Stripe& s, Range tile) {
    widen_rows(s.k, s.job.k, s.key_offset(s.job.k, tile.from), {tile.size(), s.job.d, s.step});
    widen_rows(s.v, s.job.v, s.key_offset(s.job.v, tile.from), {tile.size(), s.job.d_value, s.step});
  }
  static Range reach(Range keys, Index) { return keys; }
  static void score(const Stripe& s, Index t, const Meeting& at, Fetch* fetch) {
    const Panel q = {s.q + t * s.padded * tile_queries, tile_queries};
    multiply<Start::zero>({s.scores, tile_queries}, at.keys, at.registers(),
                          ByRows{s.k + at.skipped * s.step, s.step}, q, s.job.d, fetch);
  }
  static constexpr float left(const AttentionJob&) { return 1; }
  static constexpr float before_bias(const AttentionJob&) { return 1; }
  static void add(const Stripe& s, Index t, const Meeting& at) {
    multiply<Start::scaled>(s.o_of(t), at.queries, s.padded_value / width, ByColumns{s.scores, tile_queries},
                            {s.v + at.skipped * s.step, s.step}, at.keys);
  }
};

template <class T, class U>
void merge_rows(const AttentionJob& into, const AttentionJob& part, ScorePlace place) {
  const auto at = [&](const AttentionRows& o) {
    return place.row * o.b + place.head / into.r * o.g + place.head % into.r * o.r;
  };
  T* to = static_cast<T*>(into.o.at) + at(into.o);
  const U* from = static_cast<const U*>(part.o.at) + at(part.o);
  float* a = into.lse.at + place.row * into.lse.b + place.head * into.lse.n;
  const float* b = part.lse.at + place.row * part.lse.b + place.head * part.lse.n;
  for (Index i = 0; i < into.sq; ++i) {
    const Weights w = weigh(a[i * into.lse.s], b[i * part.lse.s]);
    combine(to + i * into.o.s, from + i * part.o.s, into.d_value, w);
    a[i * into.lse.s] = w.lse;
  }
}

template <class T>
void merge_into(const AttentionJob& into, const AttentionJob& part, ScorePlace place) {
  if (part.o.type == Element::f32) merge_rows<T, float>(into, part, place);
  if (part.o.type == Element::bf16) merge_rows<T, bf16>(into, part, place);
  if (part.o.type == Element::f16) merge_rows<T, f16>(into, part, place);
}

}  // namespace

void attention_forward(const AttentionJob& job, Index row, Index head, Index from, float* workspace) {
  forward<Floating>(job, {row, head, {from, least(from + job.stripe, job.sq)}}, workspace);
}

void attention_merge(const AttentionJob& into, const AttentionJob& part, Index row, Index head) {
  const ScorePlace place = {row, head, {0, into.sq}};
  if (into.o.type == Element::f32) merge_into<float>(into, part, place);
  if (into.o.type == Element::bf16) merge_into<bf16>(into, part, place);
  if (into.o.type == Element::f16) merge_into<f16>(into, part, place);
}

void attention_exp2(float* x, Index count) {
  for (Index i = 0; i < count; i += width) {
    Floats few = {};
    const Index now = least(width, count - i);
    for (Index j = 0; j < now; ++j) few[j] = x[i + j];
    few = exp2(few);
    for (Index j = 0; j < now; ++j) x[i + j] = few[j];
  }
}

}  // namespace weft::fast::WEFT_ISA
