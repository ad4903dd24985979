// How attention's backward pass walks: a chunk of keys of one head meets the queries tile by tile; scores are
// made again from the saved log-sum-exp. With p = exp(s - lse), D = rowsum(do * o):
//
//   dv += p^T do,   dp = do v^T,   ds = p (dp - D),   dq += scale ds k,   dk += scale ds^T q,   dbias += ds
//
// dq adds over keys and dk, dv over queries in ascending order, one product after the other, so no bit
// depends on who computes what. In exact mode they add by blocks: each block's sum from zero, then the
// blocks' sums in ascending order; dk and dv of the heads of a group then meet in a tree.
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

namespace weft::fast::WEFT_ISA {

/// One task's state, in its workspace. dk, dv and dq point at rows of `chunk.from` and `first_query`.
struct Sweep {
  const AttentionJob& job;
  AttentionShare share;
  ScorePlace place;    // all queries that meet the keys
  Index padded, step;  // columns of a row's copy, and floats from one to the next
  Range chunk;
  Index loaded = 0;  // keys of the chunk
  float *q, *dout, *q_rows, *dout_rows, *rows, *k, *v, *k_pairs, *scores, *dscores, *p_rows, *ds_rows,
      *ds_words, *turned, *factor, *lse, *delta;
  float *dq, *dq_sum, *dk, *dv, *dk_part, *dv_part, *bias;

  Sweep(const AttentionJob& j, AttentionShare what, ScorePlace at, float* workspace)
      : job(j), share(what), place(at), padded(round_up(j.d, lanes)), step(j.step) {
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
    dq_sum = workspace + places.dq_sum;
    dk = workspace + places.dk;
    dv = workspace + places.dv;
    dk_part = workspace + places.dk_part;
    dv_part = workspace + places.dv_part;
    bias = workspace + places.bias;
  }

  bool exact() const { return job.block > 0; }
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
[[gnu::noinline]] inline void add_to(float* to, const float* from, Index count) {
  for (Index i = 0; i < count; i += lanes) store(to + i, load(to + i) + load(from + i));
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
    each(job.d, [&](auto where) { products = products + load(dout, where) * load(o, where); });
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
  for (const AttentionRows* rows : {&s.job.q, &s.job.dout, &s.job.o})
    fetch_rows(fetch, *rows, s.job.d, {s.query_offset(*rows, next.from), next.size(), products});
  return fetch;
}

template <class Products>
void meet_tiles(Sweep& s, Range queries, float* dk, float* dv) {
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

/// dk, dv: rows of the chunk, added to.
template <class Products>
void meet_queries(Sweep& s, float* dk, float* dv) {
  if (!s.exact() || !s.wants_keys()) return meet_tiles<Products>(s, s.place.queries, dk, dv);
  const Index floats = (s.chunk.size() + tile_slack) * s.step;
  for (Index from = 0; from < s.job.sq; from += s.job.block) {
    clear(s.dk_part, floats);
    clear(s.dv_part, floats);
    meet_tiles<Products>(s, {from, least(from + s.job.block, s.job.sq)}, s.dk_part, s.dv_part);
    add_to(dk, s.dk_part, s.chunk.size() * s.step);
    add_to(dv, s.dv_part, s.chunk.size() * s.step);
  }
}

// ---- what comes in and goes out

/// Sums start from what is there already, or from nothing.
inline void start_rows(const Sweep& s, float* to, const AttentionRows& rows, Index offset, Index count) {
  if (s.job.accumulate)
    widen_rows(to, rows, offset, {count, s.job.d, s.step});
  else
    clear(to, count * s.step);
}

inline void start_queries(const Sweep& s) {
  const Range queries = s.place.queries;
  start_rows(s, s.exact() ? s.dq_sum : s.dq, s.job.dq, s.query_offset(s.job.dq, queries.from),
             queries.size());
}
inline void finish_queries(const Sweep& s) {
  const Range queries = s.place.queries;
  narrow_rows(s.job.dq, s.query_offset(s.job.dq, queries.from), s.exact() ? s.dq_sum : s.dq,
              {queries.size(), s.job.d, s.step});
}

/// Sums over the heads of a group. In exact mode a tree: plane i holds a finished sub-tree, the last one the
/// head at work.
struct Heads {
  Sweep& s;
  Index heads = 0, planes = 0;
  Range keys;  // that the planes hold

  bool tree() const { return s.exact() && s.job.r > 1; }
  Index floats() const { return keys.size() * s.step; }
  float* dk() const { return s.dk + (tree() ? planes * s.job.backward.plane : 0); }
  float* dv() const { return s.dv + (tree() ? planes * s.job.backward.plane : 0); }

  /// Before a head's first key.
  void begin() const {
    if (heads > 0 && !tree()) return;
    if (!tree()) {
      start_rows(s, dk(), s.job.dk, s.key_offset(s.job.dk, keys.from), keys.size());
      start_rows(s, dv(), s.job.dv, s.key_offset(s.job.dv, keys.from), keys.size());
      return;
    }
    clear(dk(), floats());
    clear(dv(), floats());
  }
  void join() {
    --planes;
    add_to(s.dk + (planes - 1) * s.job.backward.plane, s.dk + planes * s.job.backward.plane, floats());
    add_to(s.dv + (planes - 1) * s.job.backward.plane, s.dv + planes * s.job.backward.plane, floats());
  }
  /// After a head's last key: like a binary counter, two sub-trees of one size become one.
  void end() {
    ++heads;
    ++planes;
    for (Index n = heads; tree() && n % 2 == 0; n /= 2) join();
  }
  void write() {
    while (tree() && planes > 1) join();
    const Narrow how = {keys.size(), s.job.d, s.step, tree() && s.job.accumulate};
    narrow_rows(s.job.dk, s.key_offset(s.job.dk, keys.from), s.dk, how);
    narrow_rows(s.job.dv, s.key_offset(s.job.dv, keys.from), s.dv, how);
  }
};

/// body(chunk) for every chunk of keys that a query may see; after(...) at the end of each exact block.
template <class Body, class After>
void each_chunk(const Sweep& s, const Body& body, const After& after) {
  const Range seen_keys = visible(s.job, s.place.queries).both({0, s.job.sk});
  const Index block = s.exact() ? s.job.block : s.job.sk;
  for (Index b = 0; b < s.job.sk; b += block) {
    const Index end = least(b + block, s.job.sk);
    for (Index c = b; c < end; c += s.job.chunk) body(Range{c, least(c + s.job.chunk, end)}, seen_keys);
    after();
  }
}

/// Sums of a key block start from zero and join the sum of those before.
inline void fold_queries(const Sweep& s) {
  if (!s.exact()) return;
  const Index floats = s.place.queries.size() * s.step;
  add_to(s.dq_sum, s.dq, floats);
  clear(s.dq, floats);
}

/// All three gradients of one head; dk and dv of its keys are in `heads`, or, where each head has its own, go
/// straight out.
template <class Products>
void sweep_head(Sweep& s, Heads& group) {
  start_queries(s);
  load_bias(s.job, s.bias, s.place);
  if (s.exact()) clear(s.dq, s.place.queries.size() * s.step);
  const bool alone = s.job.r == 1;
  if (!alone) group.begin();
  const auto body = [&](Range chunk, Range) {
    begin_chunk(s, chunk);
    if (!alone)
      return meet_queries<Products>(s, group.dk() + chunk.from * s.step, group.dv() + chunk.from * s.step);
    Heads own = {.s = s, .keys = chunk};
    own.begin();
    meet_queries<Products>(s, own.dk(), own.dv());
    own.end();
    own.write();
  };
  each_chunk(s, body, [&] { fold_queries(s); });
  if (!alone) group.end();
  finish_queries(s);
}

template <class Products>
void backward_all(Sweep& s, const AttentionTask& task) {
  for (Index row = task.row; row < task.row + task.rows; ++row) {
    s.place.row = row;
    Heads group = {.s = s, .keys = {0, s.job.sk}};
    for (Index i = 0; i < s.job.r; ++i) {
      s.place.head = task.group * s.job.r + i;
      sweep_head<Products>(s, group);
    }
    if (s.job.r > 1) group.write();
  }
}

/// dk and dv of one chunk of keys, over all heads of the group.
template <class Products>
void backward_keys(Sweep& s, const AttentionTask& task) {
  const Index block = s.exact() ? s.job.block : s.job.sk;
  const Index per_block = (block + s.job.chunk - 1) / s.job.chunk;
  const Index start = task.part / per_block * block + task.part % per_block * s.job.chunk;
  const Index end = least(least(start + s.job.chunk, task.part / per_block * block + block), s.job.sk);
  if (start >= end) return;
  s.place.row = task.row;
  Heads group = {.s = s, .keys = {start, end}};
  for (Index i = 0; i < s.job.r; ++i) {
    s.place.head = task.group * s.job.r + i;
    load_bias(s.job, s.bias, s.place);
    begin_chunk(s, group.keys);
    group.begin();
    meet_queries<Products>(s, group.dk(), group.dv());
    group.end();
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
    if (s.exact()) clear(s.dq, s.place.queries.size() * s.step);
    const auto body = [&](Range chunk, Range seen_keys) {
      if (chunk.both(seen_keys).empty()) return;
      begin_chunk(s, chunk);
      meet_queries<Products>(s, nullptr, nullptr);
    };
    each_chunk(s, body, [&] { fold_queries(s); });
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
