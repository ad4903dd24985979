// How attention's backward pass walks: a chunk of keys of one head meets the queries tile by tile; scores are
// made again from the saved log-sum-exp. With p = exp(s - lse), D = rowsum(do * o):
//
//   dv += p^T do,   dp = do v^T,   ds = p (dp - D),   dq += scale ds k,   dk += scale ds^T q,   dbias += ds
//
// dq adds over keys and dk, dv over queries in ascending order, one product after the other, so no bit
// depends on who computes what.
//
// Products says what is multiplied: numbers widened to f32, or bf16 as it lies. It has
//   load_queries(sweep, queries), load_keys(sweep, keys of the chunk)   copies in the form that it multiplies
//   reach(keys, start of the tile)                   keys as far as it takes more than asked for
//   before_bias(job)                                 what scores are multiplied by before a bias is added
//   score(sweep, meeting, fetch)                     scores, and dscores = v do^T, both [keys, queries]
//   differentiate(sweep, meeting)                    p and ds of these, as it multiplies them; where dbias
//                                                    is wanted, ds / scale stays in dscores
//   settle(sweep, meeting)                           what dbias has kept it from doing
//   add_to_keys(sweep, meeting, dk, dv), add_to_queries(sweep, meeting, dq)
// For sources of loops/ only.
#pragma once

#include "weft/backend/cpu/fast/attention_tile.h"
#include "weft/backend/cpu/fast/math.h"

namespace weft::fast::WEFT_ISA {

/// One task's state, in its workspace. dk, dv and dq point at rows of `chunk.from` and `first_query`.
struct Sweep {
  const AttentionJob& job;
  AttentionShare share;
  ScorePlace place;            // all queries that meet the keys
  Index padded, padded_value;  // columns of a row's copy
  Index step;                  // floats from one to the next
  Range chunk;
  Index loaded = 0;  // keys of the chunk
  float *q, *dout, *q_rows, *dout_rows, *rows, *k, *v, *k_pairs, *scores, *dscores, *p_rows, *ds_rows,
      *ds_words, *turned, *factor, *lse, *delta;
  float *dq, *dk, *dv, *bias;

  Sweep(const AttentionJob& j, AttentionShare what, ScorePlace at, float* workspace)
      : job(j),
        share(what),
        place(at),
        padded(round_up(j.d, lanes)),
        padded_value(round_up(j.d_value, lanes)),
        step(j.step) {
    const BackwardPlaces& places = j.backward;
    q = workspace + places.q;
    dout = workspace + places.dout;
    q_rows = workspace + places.q_rows;
    dout_rows = workspace + places.dout_rows;
    rows = workspace + places.rows;
    k = workspace + places.k;
    v = workspace + places.v;
    k_pairs = workspace + places.k_pairs;
    scores = workspace + places.scores;
    dscores = workspace + places.dscores;
    p_rows = workspace + places.p_rows;
    ds_rows = workspace + places.ds_rows;
    ds_words = workspace + places.ds_words;
    turned = workspace + places.turned;
    factor = workspace + places.factor;
    lse = workspace + places.lse;
    delta = workspace + places.delta;
    dq = workspace + places.dq;
    dk = workspace + places.dk;
    dv = workspace + places.dv;
    bias = workspace + places.bias;
  }

  bool wants_keys() const { return share != AttentionShare::queries; }
  bool wants_queries() const { return share != AttentionShare::keys; }
  Index query_offset(const AttentionRows& of, Index position) const {
    return position * of.s + place.row * of.b + place.head / job.r * of.g + place.head % job.r * of.r;
  }
  Index key_offset(const AttentionRows& of, Index position) const {
    return position * of.s + place.row * of.b + place.head / job.r * of.g;
  }
};

inline void clear(float* to, Index count) {
  for (Index i = 0; i < count; i += lanes) store(to + i, all(0.0F));
}

// ---- one tile

/// A row of a head, in its own type.
inline In row_of(const AttentionRows& rows, Index offset) {
  const Type type = rows.type == Element::f32    ? Type::f32
                    : rows.type == Element::bf16 ? Type::bf16
                                                 : Type::f16;
  return {static_cast<const char*>(rows.at) + offset * size_of(type), type};
}

/// The queries' log-sum-exp in powers of two, and D.
inline void load_sums(const Sweep& s, Range queries) {
  const AttentionJob& job = s.job;
  const float* lse = job.lse.at + s.place.row * job.lse.b + s.place.head * job.lse.n;
  for (Index i = 0; i < tile_queries; ++i) {
    s.lse[i] = infinite;  // exp(s - infinity) is 0
    s.delta[i] = 0;
    if (i >= queries.size()) continue;
    const float sum_of_exp = lse[(queries.from + i) * job.lse.s];
    if (sum_of_exp != -infinite) s.lse[i] = sum_of_exp * log2_e;
    const In o = row_of(job.o, s.query_offset(job.o, queries.from + i));
    const In dout = row_of(job.dout, s.query_offset(job.dout, queries.from + i));
    F products = all(0.0F);
    each(job.d_value,
         [&](auto where) { products = added_product(load(dout, where), load(o, where), products); });
    s.delta[i] = sum(products);
  }
}

/// Rows of the chunk's first key and of the tile's first query, all added to; and what to ask for meanwhile.
struct Gradients {
  float *dk, *dv, *dq;
  Fetch fetch;
};

/// Queries (at most a tile of them, already loaded) meet one tile of keys.
template <class Products>
void meet(const Sweep& s, const ScorePlace& here, Range keys, Gradients& to) {
  const AttentionJob& job = s.job;
  const Meeting at = {here.queries.size(), keys.from - s.chunk.from, keys.size()};
  const auto multiply_all = [&] { Products::score(s, at, &to.fetch); };
  const ScoreTile scores = {s.scores, here, keys, s.bias, s.place.queries.from, Products::before_bias(job)};
  if (!score(job, scores, multiply_all)) return;
  if (job.dropout.wanted) draw(job, s.factor, here, keys);
  Products::differentiate(s, at);
  if (job.dbias.wanted && s.wants_queries()) add_to_dbias(job, s.dscores, here, keys);
  Products::settle(s, at);
  if (s.wants_keys()) Products::add_to_keys(s, at, to.dk + at.skipped * s.step, to.dv + at.skipped * s.step);
  if (s.wants_queries()) Products::add_to_queries(s, at, to.dq);
}

// ---- a chunk of keys and all queries of a task

inline void begin_chunk(Sweep& s, Range chunk) {
  s.chunk = chunk;
  s.loaded = 0;
}

/// How many keys from the chunk's start on are loaded for these, in whole tiles.
inline Index needed(const Sweep& s, Range seen_keys) {
  return least(round_up(seen_keys.to - s.chunk.from, tile_keys), s.chunk.size());
}
/// Under a causal mask the first queries need few keys.
template <class Products>
void load_keys(Sweep& s, Range seen_keys) {
  const Index keys = needed(s, seen_keys);
  if (keys <= s.loaded) return;
  Products::load_keys(s, {s.loaded, keys});
  s.loaded = keys;
}

inline Fetch fetch_queries(const Sweep& s, Range next) {
  Fetch fetch;
  const Index products = 2 * ((s.chunk.size() + tile_keys - 1) / tile_keys);
  const auto fetch_some = [&](const AttentionRows& rows, Index d) {
    fetch_rows(fetch, rows, d, {s.query_offset(rows, next.from), next.size(), products});
  };
  fetch_some(s.job.q, s.job.d);
  fetch_some(s.job.dout, s.job.d_value);
  fetch_some(s.job.o, s.job.d_value);
  return fetch;
}

/// dk, dv: rows of the chunk, added to.
template <class Products>
void meet_queries(Sweep& s, float* dk, float* dv) {
  const Range queries = s.place.queries;
  for (Index from = queries.from; from < queries.to; from += tile_queries) {
    const ScorePlace here = {s.place.row, s.place.head, {from, least(from + tile_queries, queries.to)}};
    const Range keys = attended(s.job, here, s.chunk);
    if (keys.empty()) continue;
    load_keys<Products>(s, keys);
    load_sums(s, here.queries);
    Products::load_queries(s, here.queries);
    const Range next = Range{here.queries.to, here.queries.to + tile_queries}.both(queries);
    Gradients to = {dk, dv, s.dq + (from - s.place.queries.from) * s.step, fetch_queries(s, next)};
    for (Index k = s.chunk.from; k < s.chunk.to; k += tile_keys) {
      const Range tile = keys.both({k, k + tile_keys});
      if (!tile.empty()) meet<Products>(s, here, Products::reach(tile, k), to);
    }
  }
}

// ---- what comes in and goes out

/// Rows of a gradient, from an offset on.
struct RowsFrom {
  const AttentionRows& rows;
  Index offset, count, d;
};
/// Sums start from what is there already, or from nothing.
inline void start_rows(const Sweep& s, float* to, const RowsFrom& from) {
  if (s.job.accumulate)
    widen_rows(to, from.rows, from.offset, {from.count, from.d, s.step});
  else
    clear(to, from.count * s.step);
}

inline void start_queries(const Sweep& s) {
  const Range queries = s.place.queries;
  start_rows(s, s.dq, {s.job.dq, s.query_offset(s.job.dq, queries.from), queries.size(), s.job.d});
}
inline void finish_queries(const Sweep& s) {
  const Range queries = s.place.queries;
  narrow_rows(s.job.dq, s.query_offset(s.job.dq, queries.from), s.dq, {queries.size(), s.job.d, s.step});
}

/// Sums over the heads of a group.
struct KeySums {
  const Sweep& s;
  Range keys;

  /// Before the first head's first key.
  void begin() const {
    start_rows(s, s.dk, {s.job.dk, s.key_offset(s.job.dk, keys.from), keys.size(), s.job.d});
    start_rows(s, s.dv, {s.job.dv, s.key_offset(s.job.dv, keys.from), keys.size(), s.job.d_value});
  }
  void write() const {
    narrow_rows(s.job.dk, s.key_offset(s.job.dk, keys.from), s.dk, {keys.size(), s.job.d, s.step});
    narrow_rows(s.job.dv, s.key_offset(s.job.dv, keys.from), s.dv, {keys.size(), s.job.d_value, s.step});
  }
};

/// body(chunk) for every chunk of keys.
template <class Body>
void each_chunk(const Sweep& s, const Body& body) {
  for (Index c = 0; c < s.job.sk; c += s.job.chunk) body(Range{c, least(c + s.job.chunk, s.job.sk)});
}

/// All three gradients of one head; dk and dv of its keys stay where they are added up over the group's
/// heads, or, where each head has its own, go straight out.
template <class Products>
void sweep_head(Sweep& s) {
  start_queries(s);
  load_bias(s.job, s.bias, s.place);
  each_chunk(s, [&](Range chunk) {
    begin_chunk(s, chunk);
    if (s.job.r > 1) return meet_queries<Products>(s, s.dk + chunk.from * s.step, s.dv + chunk.from * s.step);
    const KeySums own = {s, chunk};
    own.begin();
    meet_queries<Products>(s, s.dk, s.dv);
    own.write();
  });
  finish_queries(s);
}

template <class Products>
void backward_all(Sweep& s, const AttentionTask& task) {
  for (Index row = task.row; row < task.row + task.rows; ++row) {
    s.place.row = row;
    s.place.head = task.group * s.job.r;
    const KeySums group = {s, {0, s.job.sk}};
    if (s.job.r > 1) group.begin();
    for (Index i = 0; i < s.job.r; ++i) {
      s.place.head = task.group * s.job.r + i;
      sweep_head<Products>(s);
    }
    if (s.job.r > 1) group.write();
  }
}

/// dk and dv of one chunk of keys, over all heads of the group.
template <class Products>
void backward_keys(Sweep& s, const AttentionTask& task) {
  const Index start = task.part * s.job.chunk;
  const Index end = least(start + s.job.chunk, s.job.sk);
  if (start >= end) return;
  s.place.row = task.row;
  s.place.head = task.group * s.job.r;
  const KeySums group = {s, {start, end}};
  group.begin();
  for (Index i = 0; i < s.job.r; ++i) {
    s.place.head = task.group * s.job.r + i;
    load_bias(s.job, s.bias, s.place);
    begin_chunk(s, group.keys);
    meet_queries<Products>(s, s.dk, s.dv);
  }
  group.write();
}

/// dq (and dbias) of one stripe of queries of one head.
template <class Products>
void backward_queries(Sweep& s, const AttentionTask& task) {
  const Index from = task.part * attention_stripe;
  s.place.queries = {from, least(from + attention_stripe, s.job.sq)};
  s.place.head = task.group * s.job.r + task.head;
  load_bias(s.job, s.bias, s.place);
  for (Index row = task.row; row < task.row + task.rows; ++row) {
    s.place.row = row;
    start_queries(s);
    const Range seen_keys = visible(s.job, s.place.queries).both({0, s.job.sk});
    each_chunk(s, [&](Range chunk) {
      if (chunk.both(seen_keys).empty()) return;
      begin_chunk(s, chunk);
      meet_queries<Products>(s, nullptr, nullptr);
    });
    finish_queries(s);
  }
}

template <class Products>
void backward(const AttentionJob& job, AttentionShare share, const AttentionTask& task, float* workspace) {
  Sweep s(job, share, {task.row, 0, {0, job.sq}}, workspace);
  if (share == AttentionShare::all) backward_all<Products>(s, task);
  if (share == AttentionShare::keys) backward_keys<Products>(s, task);
  if (share == AttentionShare::queries) backward_queries<Products>(s, task);
}

}  // namespace weft::fast::WEFT_ISA
