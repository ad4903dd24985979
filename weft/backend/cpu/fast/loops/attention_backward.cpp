// Attention backward: a chunk of keys of one head meets the queries tile by tile; scores are made again from
// the saved log-sum-exp. With p = exp(s - lse), D = rowsum(do * o):
//
//   dv += p^T do,   dp = do v^T,   ds = p (dp - D),   dq += scale ds k,   dk += scale ds^T q,   dbias += ds
//
// dq adds over keys and dk, dv over queries in ascending order, one product after the other, so no bit
// depends on who computes what. In exact mode they add by blocks: each block's sum from zero, then the
// blocks' sums in ascending order; dk and dv of the heads of a group then meet in a tree.
#include "weft/backend/cpu/fast/attention_tile.h"
#include "weft/backend/cpu/fast/loops/attention.h"

namespace weft::fast::WEFT_ISA {

namespace {

/// One task's state, in its workspace. dk, dv and dq point at rows of `chunk.from` and `first_query`.
struct Sweep {
  const AttentionJob& job;
  AttentionShare share;
  Place place;         // all queries that meet the keys
  Index padded, step;  // columns of a row's copy, and floats from one to the next
  Range chunk;
  float *q, *dout, *q_rows, *dout_rows, *o_rows, *k, *v, *scores, *dscores, *factor, *lse, *delta;
  float *dq, *dq_sum, *dk, *dv, *dk_part, *dv_part;

  Sweep(const AttentionJob& j, AttentionShare what, Place at, float* workspace)
      : job(j), share(what), place(at), padded(round_up(j.d, lanes)), step(j.step) {
    const BackwardPlaces& places = j.backward;
    q = workspace + places.q;
    dout = workspace + places.dout;
    q_rows = workspace + places.q_rows;
    dout_rows = workspace + places.dout_rows;
    o_rows = workspace + places.o_rows;
    k = workspace + places.k;
    v = workspace + places.v;
    scores = workspace + places.scores;
    dscores = workspace + places.dscores;
    factor = workspace + places.factor;
    lse = workspace + places.lse;
    delta = workspace + places.delta;
    dq = workspace + places.dq;
    dq_sum = workspace + places.dq_sum;
    dk = workspace + places.dk;
    dv = workspace + places.dv;
    dk_part = workspace + places.dk_part;
    dv_part = workspace + places.dv_part;
  }

  bool exact() const { return job.block > 0; }
  bool wants_keys() const { return share != AttentionShare::queries; }
  bool wants_queries() const { return share != AttentionShare::keys; }
  Index query_offset(const AttentionRows& rows, Index position) const {
    return position * rows.s + place.row * rows.b + place.head / job.r * rows.g + place.head % job.r * rows.r;
  }
  Index key_offset(const AttentionRows& rows, Index position) const {
    return position * rows.s + place.row * rows.b + place.head / job.r * rows.g;
  }
};

void clear(float* to, Index count) {
  for (Index i = 0; i < count; i += lanes) store(to + i, all(0.0F));
}
[[gnu::noinline]] void add_to(float* to, const float* from, Index count) {
  for (Index i = 0; i < count; i += lanes) store(to + i, load(to + i) + load(from + i));
}

// ---- one tile

/// Queries, what came back for them, their log-sum-exp in powers of two, and D.
void load_queries(const Sweep& s, Range queries) {
  const AttentionJob& job = s.job;
  const Widen plain = {queries.size(), job.d, s.step};
  widen_rows(s.o_rows, job.q, s.query_offset(job.q, queries.from),
             {queries.size(), job.d, s.step, job.scale * log2_e});
  transpose(s.q, s.o_rows, s.step, {queries.size(), s.padded});
  widen_rows(s.q_rows, job.q, s.query_offset(job.q, queries.from), plain);
  widen_rows(s.dout_rows, job.dout, s.query_offset(job.dout, queries.from), plain);
  transpose(s.dout, s.dout_rows, s.step, {queries.size(), s.padded});
  widen_rows(s.o_rows, job.o, s.query_offset(job.o, queries.from), plain);
  const float* lse = job.lse.at + s.place.row * job.lse.b + s.place.head * job.lse.n;
  for (Index i = 0; i < tile_queries; ++i) {
    const bool there = i < queries.size();
    const float sum_of_exp = there ? lse[(queries.from + i) * job.lse.s] : -infinite;
    s.lse[i] = sum_of_exp == -infinite ? infinite : sum_of_exp * log2_e;  // exp(s - infinity) is 0
    F products = all(0.0F);
    for (Index c = 0; there && c < s.padded; c += lanes)
      products = products + load(s.dout_rows + i * s.step + c) * load(s.o_rows + i * s.step + c);
    s.delta[i] = sum(products);
  }
}

/// scores become p (with dropout), dscores (which hold dp) become factor ds. Lanes without a query become 0.
void differentiate(const Sweep& s, Index queries, Index keys, float factor) {
  const Floats scale = spread(factor);
  const bool drops = s.job.dropout.wanted;
  for (Index v = 0; v < tile_queries; v += width) {
    const Floats lse = read(s.lse + v), delta = read(s.delta + v);
    for (Index at = v; v < queries && at < keys * tile_queries; at += tile_queries) {
      const Floats p = exp2(read(s.scores + at) - lse);
      const Floats kept = drops ? read(s.factor + at) : spread(1.0F);
      write(s.scores + at, p * kept);
      write(s.dscores + at, p * (read(s.dscores + at) * kept - delta) * scale);
    }
    const Index from = v < queries ? keys : 0;
    for (Index at = from * tile_queries + v; at < (keys + tile_slack) * tile_queries; at += tile_queries) {
      write(s.scores + at, Floats{});
      write(s.dscores + at, Floats{});
    }
  }
}

void scale_dscores(const Sweep& s, Index keys) {
  for (Index i = 0; i < keys * tile_queries; i += width)
    write(s.dscores + i, read(s.dscores + i) * spread(s.job.scale));
}

/// Rows of the chunk's first key and of the tile's first query, all added to; and what to ask for meanwhile.
struct Sums {
  float *dk, *dv, *dq;
  Fetch fetch;
};

/// Queries (at most a tile of them, already loaded) meet one tile of keys.
void meet(const Sweep& s, const Place& here, Range keys, Sums& sums) {
  const AttentionJob& job = s.job;
  const Index skipped = (keys.from - s.chunk.from) * s.step;
  const Index registers = round_up(here.queries.size(), width) / width;
  if (!score(job, s.scores, here, keys, {s.k + skipped, s.step}, {s.q, tile_queries}, &sums.fetch)) return;
  multiply<Start::zero>({s.dscores, tile_queries}, keys.size(), registers, ByRows{s.v + skipped, s.step},
                        {s.dout, tile_queries}, job.d, &sums.fetch);
  if (job.dropout.wanted) draw(job, s.factor, here, keys);
  differentiate(s, here.queries.size(), keys.size(), job.dbias.wanted ? 1 : job.scale);
  if (job.dbias.wanted) {
    if (s.wants_queries()) add_to_dbias(job, s.dscores, here, keys);
    scale_dscores(s, keys.size());
  }
  const Index columns = s.padded / width;
  if (s.wants_keys()) {
    multiply<Start::more>({sums.dv + skipped, s.step}, keys.size(), columns, ByRows{s.scores, tile_queries},
                          {s.dout_rows, s.step}, here.queries.size());
    multiply<Start::more>({sums.dk + skipped, s.step}, keys.size(), columns, ByRows{s.dscores, tile_queries},
                          {s.q_rows, s.step}, here.queries.size());
  }
  if (s.wants_queries())
    multiply<Start::more>({sums.dq, s.step}, here.queries.size(), columns, ByColumns{s.dscores, tile_queries},
                          {s.k + skipped, s.step}, keys.size());
}

// ---- a chunk of keys and all queries of a task

void load_keys(Sweep& s, Range chunk) {
  s.chunk = chunk;
  widen_rows(s.k, s.job.k, s.key_offset(s.job.k, chunk.from), {chunk.size(), s.job.d, s.step});
  widen_rows(s.v, s.job.v, s.key_offset(s.job.v, chunk.from), {chunk.size(), s.job.d, s.step});
}

Fetch fetch_queries(const Sweep& s, Range next) {
  Fetch fetch;
  const Index products = 2 * ((s.chunk.size() + tile_keys - 1) / tile_keys);
  for (const AttentionRows* rows : {&s.job.q, &s.job.dout, &s.job.o})
    fetch_rows(fetch, *rows, s.job.d, {s.query_offset(*rows, next.from), next.size(), products});
  return fetch;
}

void meet_tiles(const Sweep& s, Range queries, float* dk, float* dv) {
  for (Index from = queries.from; from < queries.to; from += tile_queries) {
    const Place here = {s.place.row, s.place.head, {from, least(from + tile_queries, queries.to)}};
    const Range keys = visible(s.job, here.queries).both(s.chunk);
    if (keys.empty()) continue;
    load_queries(s, here.queries);
    const Range next = Range{here.queries.to, here.queries.to + tile_queries}.both(queries);
    Sums sums = {dk, dv, s.dq + (from - s.place.queries.from) * s.step, fetch_queries(s, next)};
    for (Index k = s.chunk.from; k < s.chunk.to; k += tile_keys) {
      const Range tile = keys.both({k, k + tile_keys});
      if (!tile.empty()) meet(s, here, tile, sums);
    }
  }
}

/// dk, dv: rows of the chunk, added to.
void meet_queries(const Sweep& s, float* dk, float* dv) {
  if (!s.exact() || !s.wants_keys()) return meet_tiles(s, s.place.queries, dk, dv);
  const Index floats = (s.chunk.size() + tile_slack) * s.step;
  for (Index from = 0; from < s.job.sq; from += s.job.block) {
    clear(s.dk_part, floats);
    clear(s.dv_part, floats);
    meet_tiles(s, {from, least(from + s.job.block, s.job.sq)}, s.dk_part, s.dv_part);
    add_to(dk, s.dk_part, s.chunk.size() * s.step);
    add_to(dv, s.dv_part, s.chunk.size() * s.step);
  }
}

// ---- what comes in and goes out

/// Sums start from what is there already, or from nothing.
void start_rows(const Sweep& s, float* to, const AttentionRows& rows, Index offset, Index count) {
  if (s.job.accumulate)
    widen_rows(to, rows, offset, {count, s.job.d, s.step});
  else
    clear(to, count * s.step);
}

void start_queries(const Sweep& s) {
  const Range queries = s.place.queries;
  start_rows(s, s.exact() ? s.dq_sum : s.dq, s.job.dq, s.query_offset(s.job.dq, queries.from),
             queries.size());
}
void finish_queries(const Sweep& s) {
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
void fold_queries(const Sweep& s) {
  if (!s.exact()) return;
  const Index floats = s.place.queries.size() * s.step;
  add_to(s.dq_sum, s.dq, floats);
  clear(s.dq, floats);
}

/// All three gradients of one head; dk and dv of its keys are in `heads`, or, where each head has its own, go
/// straight out.
void sweep_head(Sweep& s, Heads& group) {
  start_queries(s);
  if (s.exact()) clear(s.dq, s.place.queries.size() * s.step);
  const bool alone = s.job.r == 1;
  if (!alone) group.begin();
  const auto body = [&](Range chunk, Range) {
    load_keys(s, chunk);
    if (!alone) return meet_queries(s, group.dk() + chunk.from * s.step, group.dv() + chunk.from * s.step);
    Heads own = {.s = s, .keys = chunk};
    own.begin();
    meet_queries(s, own.dk(), own.dv());
    own.end();
    own.write();
  };
  each_chunk(s, body, [&] { fold_queries(s); });
  if (!alone) group.end();
  finish_queries(s);
}

void backward_all(Sweep& s, const AttentionTask& task) {
  for (Index row = task.row; row < task.row + task.rows; ++row) {
    s.place.row = row;
    Heads group = {.s = s, .keys = {0, s.job.sk}};
    for (Index i = 0; i < s.job.r; ++i) {
      s.place.head = task.group * s.job.r + i;
      sweep_head(s, group);
    }
    if (s.job.r > 1) group.write();
  }
}

/// dk and dv of one chunk of keys, over all heads of the group.
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
    load_keys(s, group.keys);
    group.begin();
    meet_queries(s, group.dk(), group.dv());
    group.end();
  }
  group.write();
}

/// dq (and dbias) of one stripe of queries of one head.
void backward_queries(Sweep& s, const AttentionTask& task) {
  const Index from = task.part * attention_stripe;
  s.place.queries = {from, least(from + attention_stripe, s.job.sq)};
  s.place.head = task.group * s.job.r + task.head;
  for (Index row = task.row; row < task.row + task.rows; ++row) {
    s.place.row = row;
    start_queries(s);
    if (s.exact()) clear(s.dq, s.place.queries.size() * s.step);
    const auto body = [&](Range chunk, Range seen_keys) {
      if (chunk.both(seen_keys).empty()) return;
      load_keys(s, chunk);
      meet_queries(s, nullptr, nullptr);
    };
    each_chunk(s, body, [&] { fold_queries(s); });
    finish_queries(s);
  }
}

}  // namespace

void attention_backward(const AttentionJob& job, AttentionShare share, const AttentionTask& task,
                        float* workspace) {
  Sweep s(job, share, {task.row, 0, {0, job.sq}}, workspace);
  if (share == AttentionShare::all) backward_all(s, task);
  if (share == AttentionShare::keys) backward_keys(s, task);
  if (share == AttentionShare::queries) backward_queries(s, task);
}

extern const AttentionLoops attention_loops;
const AttentionLoops attention_loops = {attention_forward, attention_backward, attention_merge,
                                        attention_exp2};

}  // namespace weft::fast::WEFT_ISA
