// How attention's forward pass walks: a stripe of queries of one head meets the keys tile by tile; the scores
// never leave the cache.
//
//   s = scale q k^T + bias (masked: -inf),   m = max s,   p = exp(s - m),   l = sum p,   o = p v / l,   lse =
//   m + log l
//
// m, l and o are kept per query and corrected by exp(m_old - m_new) when a later tile of keys raises m.
//
// Products says what is multiplied: numbers widened to f32, or bf16 as it lies. It has
//   load_queries(stripe, t), load_keys(stripe, tile)   copies in the form that it multiplies
//   reach(keys, tile)                                  keys as far as it takes more than asked for
//   score(stripe, t, meeting, fetch)                   scores [keys, queries]
//   left(job)                                          what these are yet to be multiplied by, over 0, to be
//                                                      in powers of two
//   before_bias(job)                                   the same, where a bias is yet to be added
//   add(stripe, t, meeting)                            o of tile t times stripe.scale, and p v
// For sources of loops/ only.
#pragma once

#include "weft/backend/cpu/fast/attention_tile.h"
#include "weft/backend/cpu/fast/math.h"

namespace weft::fast::WEFT_ISA {

/// One task's state, in its workspace.
struct Stripe {
  const AttentionJob& job;
  ScorePlace place;            // all queries of the stripe
  unsigned loaded = 0;         // a bit for every tile of queries
  Index padded, padded_value;  // columns of a row's copy
  Index step;                  // floats from one to the next
  float *q, *rows, *k, *v, *scores, *turned, *factor, *scale, *o, *maximum, *sum, *bias;

  Stripe(const AttentionJob& j, ScorePlace at, float* workspace)
      : job(j),
        place(at),
        padded(round_up(j.d, lanes)),
        padded_value(round_up(j.d_value, lanes)),
        step(j.step) {
    const ForwardPlaces& places = j.forward;
    q = workspace + places.q;
    rows = workspace + places.rows;
    k = workspace + places.k;
    v = workspace + places.v;
    scores = workspace + places.scores;
    turned = workspace + places.turned;
    factor = workspace + places.factor;
    scale = workspace + places.scale;
    o = workspace + places.o;
    maximum = workspace + places.maximum;
    sum = workspace + places.sum;
    bias = workspace + places.bias;
  }

  Index tiles() const { return (place.queries.size() + tile_queries - 1) / tile_queries; }
  Range queries(Index tile) const {
    const Index from = place.queries.from + tile * tile_queries;
    return {from, least(from + tile_queries, place.queries.to)};
  }
  Target o_of(Index tile) const { return {o + tile * tile_queries * step, step, scale}; }
  Index query_offset(const AttentionRows& of, Index position) const {
    return position * of.s + place.row * of.b + place.head / job.r * of.g + place.head % job.r * of.r;
  }
  Index key_offset(const AttentionRows& of, Index position) const {
    return position * of.s + place.row * of.b + place.head / job.r * of.g;
  }
};

inline void begin(const Stripe& s) {
  const Index queries = s.tiles() * tile_queries;
  for (Index i = 0; i < queries; ++i) {
    s.maximum[i] = -infinite;
    s.sum[i] = 0;
  }
  for (Index i = 0; i < queries * s.step; ++i) s.o[i] = 0;
}

/// Greatest score of each query of some registers; every chains-th key a chain of its own.
template <int count>
[[gnu::always_inline]] inline Queries<count> greatest_of(const float* scores, Index keys) {
  constexpr int chains = count == 1 ? 4 : 2;
  Queries<count> best[chains];
  for (Queries<count>& chain : best)
    for (Floats& x : chain.of) x = spread(-infinite);
  const auto take = [&](Index k, Queries<count> & chain) __attribute__((always_inline)) {
    for (int i = 0; i < count; ++i) {
      const Floats x = read(scores + k * tile_queries + i * width);
      chain.of[i] = x > chain.of[i] ? x : chain.of[i];
    }
  };
  Index k = 0;
  for (; k + chains <= keys; k += chains)
    for (int c = 0; c < chains; ++c) take(k + c, best[c]);
  for (; k < keys; ++k) take(k, best[0]);
  for (int c = 1; c < chains; ++c)
    for (int i = 0; i < count; ++i)
      best[0].of[i] = best[c].of[i] > best[0].of[i] ? best[c].of[i] : best[0].of[i];
  return best[0];
}

/// Some registers of a tile of scores.
struct Column {
  Index first, v;  // the tile's first query, and the column's in the tile
  Index keys;
  float left;  // what turns scores to powers of two
};
/// Scores become probabilities (not yet divided by their sum); scale is what earlier ones shrink by.
template <int count>
[[gnu::noinline]] void normalize(const Stripe& s, Column column, Registers<count>) {
  const Index v = column.v, keys = column.keys;
  float* scores = s.scores + v;
  const Floats unit = spread(column.left);
  Queries<count> base = greatest_of<count>(scores, keys), sum;
  for (int i = 0; i < count; ++i) {
    const Index at = column.first + v + i * width;
    const Floats before = read(s.maximum + at), found = base.of[i] * unit;
    const Floats best = found > before ? found : before;
    // A query that has seen nothing yet has no maximum: its scores are all -inf, and stay so.
    base.of[i] = best == -infinite ? Floats{} : best;
    const Floats shrink = exp2(before - base.of[i]);
    sum.of[i] = read(s.sum + at) * shrink;
    write(s.maximum + at, best);
    write(s.scale + v + i * width, shrink);
  }
  for (Index k = 0; k < keys; ++k)
    for (int i = 0; i < count; ++i) {
      float* here = scores + k * tile_queries + i * width;
      const Floats p = exp2(added_product(read(here), unit, -base.of[i]));
      sum.of[i] = sum.of[i] + p;
      write(here, p);
    }
  for (int i = 0; i < count; ++i) write(s.sum + column.first + v + i * width, sum.of[i]);
}

inline void drop(const Stripe& s, const ScorePlace& place, Range keys) {
  draw(s.job, s.factor, place, keys);
  for (Index k = 0; k < keys.size(); ++k)
    for (Index v = k * tile_queries; v < k * tile_queries + place.queries.size(); v += width)
      write(s.scores + v, read(s.scores + v) * read(s.factor + v));
}

/// The next tile of keys, and at the stripe's first one its queries.
inline Fetch fetch_ahead(const Stripe& s, Range keys) {
  Fetch fetch;
  const AttentionJob& job = s.job;
  const Index tiles = s.tiles();
  fetch_rows(fetch, job.k, job.d, {s.key_offset(job.k, keys.from), keys.size(), tiles});
  fetch_rows(fetch, job.v, job.d_value, {s.key_offset(job.v, keys.from), keys.size(), tiles});
  const Range queries = {s.place.queries.from + tile_queries, s.place.queries.to};
  if (s.loaded == 0)
    fetch_rows(fetch, job.q, job.d, {s.query_offset(job.q, queries.from), queries.size(), tiles - 1});
  return fetch;
}

/// All queries of the stripe meet one tile of keys.
template <class Products>
void attend(Stripe& s, Range tile, Range next) {
  const AttentionJob& job = s.job;
  Products::load_keys(s, tile);
  Fetch fetch = fetch_ahead(s, next);
  for (Index t = 0; t < s.tiles(); ++t) {
    const ScorePlace here = {s.place.row, s.place.head, s.queries(t)};
    const Range seen_keys = attended(job, here, tile);
    if (seen_keys.empty()) continue;
    if ((s.loaded >> t & 1) == 0) Products::load_queries(s, t);
    s.loaded |= 1U << t;
    const Range keys = Products::reach(seen_keys, tile.from);
    const Meeting at = {here.queries.size(), keys.from - tile.from, keys.size()};
    const auto multiply_all = [&] { Products::score(s, t, at, &fetch); };
    const ScoreTile scores = {s.scores, here, keys, s.bias, s.place.queries.from, Products::before_bias(job)};
    if (!score(job, scores, multiply_all)) continue;
    each_registers(at.queries, [&](Index v, auto registers) {
      normalize(s, {t * tile_queries, v, at.keys, Products::left(job)}, registers);
    });
    if (job.dropout.wanted) drop(s, here, keys);
    Products::add(s, t, at);
  }
}

/// A score that is no number leaves no sum that is one, and no trace in the maximum.
inline void write_greatest(const Stripe& s) {
  const AttentionSums& to = s.job.greatest;
  if (to.at == nullptr) return;
  float* at = to.at + s.place.row * to.b + s.place.head * to.n + s.place.queries.from * to.s;
  for (Index i = 0; i < s.place.queries.size(); ++i)
    at[i * to.s] = s.sum[i] == s.sum[i] ? float(double(s.maximum[i]) * 0.693147180559945309) : infinite;
}

/// o is divided by the sum; maximum becomes the log-sum-exp.
inline void finish(const Stripe& s) {
  for (Index i = 0; i < s.place.queries.size(); ++i) {
    const float sum = s.sum[i];
    const F factor = all(sum == 0 ? 0.0F : 1 / sum);
    for (Index c = 0; c < s.padded_value; c += lanes)
      store(s.o + i * s.step + c, load(s.o + i * s.step + c) * factor);
    s.maximum[i] = sum == 0
                       ? -infinite
                       : float((double(s.maximum[i]) + __builtin_log2(double(sum))) * 0.693147180559945309);
  }
}

// ---- parts over different keys

struct Weights {
  float lse, a, b;
};
/// How two parts over different keys weigh in their union.
[[gnu::noinline]] inline Weights weigh(float a, float b) {
  const float best = a > b ? a : b;
  if (best == -infinite) return {best, 0, 0};
  const double ea = __builtin_exp(double(a) - double(best)), eb = __builtin_exp(double(b) - double(best));
  const double sum = ea + eb;
  return {float(double(best) + __builtin_log(sum)), float(ea / sum), float(eb / sum)};
}
/// into = a into + b part
template <class T, class U>
[[gnu::noinline]] void combine(T* into, const U* part, Index d, Weights w) {
  const auto put = [&](auto where) {
    const F scaled = load(into, where) * all(w.a);
    store(into, where, fused(load(part, where), all(w.b), scaled));
  };
  each(d, put);
}

inline void write_out(const Stripe& s) {
  narrow_rows(s.job.o, s.query_offset(s.job.o, s.place.queries.from), s.o,
              {s.place.queries.size(), s.job.d_value, s.step});
  const AttentionSums& to = s.job.lse;
  float* at = to.at + s.place.row * to.b + s.place.head * to.n + s.place.queries.from * to.s;
  for (Index i = 0; i < s.place.queries.size(); ++i) at[i * to.s] = s.maximum[i];
}

/// A whole task.
template <class Products>
void forward(const AttentionJob& job, ScorePlace place, float* workspace) {
  Stripe s(job, place, workspace);
  begin(s);
  load_bias(job, s.bias, place);
  const Range all_keys = attended(job, place, {0, job.sk});
  for (Index k = 0; k < job.sk; k += tile_keys) {
    const Range tile = {k, least(k + tile_keys, job.sk)};
    const Range next = Range{tile.to, tile.to + tile_keys}.both(all_keys);
    if (!tile.both(all_keys).empty()) attend<Products>(s, tile, next);
  }
  write_greatest(s);
  finish(s);
  write_out(s);
}

}  // namespace weft::fast::WEFT_ISA
