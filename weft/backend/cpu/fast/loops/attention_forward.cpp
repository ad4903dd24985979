// Attention forward: a stripe of queries of one head meets the keys tile by tile; the scores never leave the
// cache.
//
//   s = scale q k^T + bias (masked: -inf),   m = max s,   p = exp(s - m),   l = sum p,   o = p v / l,   lse =
//   m + log l
//
// m, l and o are kept per query and corrected by exp(m_old - m_new) when a later tile of keys raises m.
#include "weft/backend/cpu/fast/attention_tile.h"
#include "weft/backend/cpu/fast/loops/attention.h"

namespace weft::fast::WEFT_ISA {

namespace {

/// One task's state, in its workspace.
struct Stripe {
  const AttentionJob& job;
  Place place;          // all queries of the stripe
  unsigned loaded = 0;  // a bit for every tile of queries
  Index padded, step;   // columns of a row's copy, and floats from one to the next
  float *q, *rows, *k, *v, *scores, *factor, *scale, *o, *maximum, *sum, *merged, *merged_lse;

  Stripe(const AttentionJob& j, Place at, float* workspace)
      : job(j), place(at), padded(round_up(j.d, lanes)), step(j.step) {
    const ForwardPlaces& places = j.forward;
    q = workspace + places.q;
    rows = workspace + places.rows;
    k = workspace + places.k;
    v = workspace + places.v;
    scores = workspace + places.scores;
    factor = workspace + places.factor;
    scale = workspace + places.scale;
    o = workspace + places.o;
    maximum = workspace + places.maximum;
    sum = workspace + places.sum;
    merged = workspace + places.merged;
    merged_lse = workspace + places.merged_lse;
  }

  Index tiles() const { return (place.queries.size() + tile_queries - 1) / tile_queries; }
  Range queries(Index tile) const {
    const Index from = place.queries.from + tile * tile_queries;
    return {from, least(from + tile_queries, place.queries.to)};
  }
  Index offset(const AttentionRows& rows_of, Index position, bool by_head) const {
    const Index group = place.head / job.r;
    return position * rows_of.s + place.row * rows_of.b + group * rows_of.g +
           (by_head ? place.head % job.r * rows_of.r : 0);
  }
};

void load_queries(const Stripe& s, Index t) {
  const Range here = s.queries(t);
  widen_rows(s.rows, s.job.q, s.offset(s.job.q, here.from, true),
             {here.size(), s.job.d, s.step, s.job.scale * log2_e});
  transpose(s.q + t * s.padded * tile_queries, s.rows, s.step, {here.size(), s.padded});
}

void begin(const Stripe& s) {
  const Index queries = s.tiles() * tile_queries;
  for (Index i = 0; i < queries; ++i) {
    s.maximum[i] = -infinite;
    s.sum[i] = 0;
  }
  for (Index i = 0; i < queries * s.step; ++i) s.o[i] = 0;
}

/// Greatest score of each query of a register.
[[gnu::always_inline]] inline Floats greatest_of(const float* scores, Index keys, Floats before) {
  Floats best[4] = {before, before, before, before};
  Index k = 0;
  for (; k + 4 <= keys; k += 4)
    for (int i = 0; i < 4; ++i) {
      const Floats x = read(scores + (k + i) * tile_queries);
      best[i] = x > best[i] ? x : best[i];
    }
  for (; k < keys; ++k) {
    const Floats x = read(scores + k * tile_queries);
    best[0] = x > best[0] ? x : best[0];
  }
  best[0] = best[0] > best[1] ? best[0] : best[1];
  best[2] = best[2] > best[3] ? best[2] : best[3];
  return best[0] > best[2] ? best[0] : best[2];
}

/// Scores become probabilities (not yet divided by their sum); scale is what earlier ones shrink by.
void normalize(const Stripe& s, Index first, Index queries, Index keys) {
  for (Index v = 0; v < queries; v += width) {
    float* scores = s.scores + v;
    const Floats before = read(s.maximum + first + v);
    const Floats best = greatest_of(scores, keys, before);
    // A query that has seen nothing yet has no maximum: its scores are all -inf, and stay so.
    const Floats base = best == -infinite ? Floats{} : best;
    const Floats shrink = exp2(before - base);
    Floats sum = read(s.sum + first + v) * shrink;
    for (Index k = 0; k < keys; ++k) {
      const Floats p = exp2(read(scores + k * tile_queries) - base);
      sum = sum + p;
      write(scores + k * tile_queries, p);
    }
    write(s.maximum + first + v, best);
    write(s.sum + first + v, sum);
    write(s.scale + v, shrink);
  }
}

void drop(const Stripe& s, const Place& place, Range keys) {
  draw(s.job, s.factor, place, keys);
  for (Index k = 0; k < keys.size(); ++k)
    for (Index v = k * tile_queries; v < k * tile_queries + place.queries.size(); v += width)
      write(s.scores + v, read(s.scores + v) * read(s.factor + v));
}

/// The next tile of keys, and at the stripe's first one its queries.
Fetch fetch_ahead(const Stripe& s, Range keys) {
  Fetch fetch;
  const AttentionJob& job = s.job;
  const Index tiles = s.tiles();
  fetch_rows(fetch, job.k, job.d, {s.offset(job.k, keys.from, false), keys.size(), tiles});
  fetch_rows(fetch, job.v, job.d, {s.offset(job.v, keys.from, false), keys.size(), tiles});
  const Range queries = {s.place.queries.from + tile_queries, s.place.queries.to};
  if (s.loaded == 0)
    fetch_rows(fetch, job.q, job.d, {s.offset(job.q, queries.from, true), queries.size(), tiles - 1});
  return fetch;
}

/// All queries of the stripe meet one tile of keys.
void attend(Stripe& s, Range tile, Range next) {
  const AttentionJob& job = s.job;
  widen_rows(s.k, job.k, s.offset(job.k, tile.from, false), {tile.size(), job.d, s.step});
  widen_rows(s.v, job.v, s.offset(job.v, tile.from, false), {tile.size(), job.d, s.step});
  Fetch fetch = fetch_ahead(s, next);
  for (Index t = 0; t < s.tiles(); ++t) {
    const Place here = {s.place.row, s.place.head, s.queries(t)};
    const Range keys = visible(job, here.queries).both(tile);
    if (keys.empty()) continue;
    if ((s.loaded >> t & 1) == 0) load_queries(s, t);
    s.loaded |= 1U << t;
    const Index skipped = (keys.from - tile.from) * s.step;
    const Panel q = {s.q + t * s.padded * tile_queries, tile_queries};
    if (!score(job, s.scores, here, keys, {s.k + skipped, s.step}, q, &fetch)) continue;
    normalize(s, t * tile_queries, here.queries.size(), keys.size());
    if (job.dropout.wanted) drop(s, here, keys);
    multiply<Start::scaled>({s.o + t * tile_queries * s.step, s.step, s.scale}, here.queries.size(),
                            s.padded / width, ByColumns{s.scores, tile_queries}, {s.v + skipped, s.step},
                            keys.size());
  }
}

/// o is divided by the sum; maximum becomes the log-sum-exp.
void finish(const Stripe& s) {
  for (Index i = 0; i < s.place.queries.size(); ++i) {
    const float sum = s.sum[i];
    const F factor = all(sum == 0 ? 0.0F : 1 / sum);
    for (Index c = 0; c < s.padded; c += lanes)
      store(s.o + i * s.step + c, load(s.o + i * s.step + c) * factor);
    s.maximum[i] = sum == 0
                       ? -infinite
                       : float((double(s.maximum[i]) + __builtin_log2(double(sum))) * 0.693147180559945309);
  }
}

struct Weights {
  float lse, a, b;
};
/// How two parts over different keys weigh in their union. Exact mode's bits rest on this one function.
[[gnu::noinline]] Weights weigh(float a, float b) {
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
    store(into, where, load(part, where) * all(w.b) + scaled);
  };
  each(d, put);
}

void merge_block(const Stripe& s) {
  for (Index i = 0; i < s.place.queries.size(); ++i) {
    const Weights w = weigh(s.merged_lse[i], s.maximum[i]);
    combine(s.merged + i * s.step, s.o + i * s.step, s.job.d, w);
    s.merged_lse[i] = w.lse;
  }
}

void write_out(const Stripe& s, const float* o, const float* lse) {
  narrow_rows(s.job.o, s.offset(s.job.o, s.place.queries.from, true), o,
              {s.place.queries.size(), s.job.d, s.step});
  const AttentionSums& to = s.job.lse;
  float* at = to.at + s.place.row * to.b + s.place.head * to.n + s.place.queries.from * to.s;
  for (Index i = 0; i < s.place.queries.size(); ++i) at[i * to.s] = lse[i];
}

template <class T, class U>
void merge_rows(const AttentionJob& into, const AttentionJob& part, Place place) {
  const auto at = [&](const AttentionRows& o) {
    return place.row * o.b + place.head / into.r * o.g + place.head % into.r * o.r;
  };
  T* to = static_cast<T*>(into.o.at) + at(into.o);
  const U* from = static_cast<const U*>(part.o.at) + at(part.o);
  float* a = into.lse.at + place.row * into.lse.b + place.head * into.lse.n;
  const float* b = part.lse.at + place.row * part.lse.b + place.head * part.lse.n;
  for (Index i = 0; i < into.sq; ++i) {
    const Weights w = weigh(a[i * into.lse.s], b[i * part.lse.s]);
    combine(to + i * into.o.s, from + i * part.o.s, into.d, w);
    a[i * into.lse.s] = w.lse;
  }
}

template <class T>
void merge_into(const AttentionJob& into, const AttentionJob& part, Place place) {
  if (part.o.type == Element::f32) merge_rows<T, float>(into, part, place);
  if (part.o.type == Element::bf16) merge_rows<T, bf16>(into, part, place);
  if (part.o.type == Element::f16) merge_rows<T, f16>(into, part, place);
}

}  // namespace

void attention_forward(const AttentionJob& job, Index row, Index head, Index from, float* workspace) {
  const Range queries = {from, least(from + job.stripe, job.sq)};
  Stripe s(job, {row, head, queries}, workspace);
  begin(s);
  if (job.block > 0) {
    for (Index i = 0; i < queries.size(); ++i) s.merged_lse[i] = -infinite;
    for (Index i = 0; i < queries.size() * s.step; ++i) s.merged[i] = 0;
  }
  const Range all_keys = visible(job, queries);
  const Index block = job.block > 0 ? job.block : job.sk;
  for (Index b = 0; b < job.sk; b += block) {
    const Range keys = {b, least(b + block, job.sk)};
    if (keys.both(all_keys).empty()) continue;
    for (Index k = keys.from; k < keys.to; k += tile_keys) {
      const Range tile = {k, least(k + tile_keys, keys.to)};
      if (!tile.both(all_keys).empty()) attend(s, tile, Range{tile.to, tile.to + tile_keys}.both(all_keys));
    }
    if (job.block == 0) continue;
    finish(s);
    merge_block(s);
    begin(s);
  }
  if (job.block == 0) finish(s);
  write_out(s, job.block > 0 ? s.merged : s.o, job.block > 0 ? s.merged_lse : s.maximum);
}

void attention_merge(const AttentionJob& into, const AttentionJob& part, Index row, Index head) {
  const Place place = {row, head, {0, into.sq}};
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
