// Attention backward on numbers widened to f32.
#include "weft/backend/cpu/fast/attention_backward.h"

#include "weft/backend/cpu/fast/loops/attention.h"

namespace weft::fast::WEFT_ISA {

namespace {

/// Some registers of a tile of scores.
struct Column {
  Index v, keys;
  float factor;  // of ds
};
/// What is to be asked of every probability and score.
enum class Asks : std::uint8_t { nothing, drops, all };
/// scores become p (with dropout), dscores (which hold dp) become factor ds.
template <Asks asks, int count>
[[gnu::noinline]] void differentiate_columns(const Sweep& s, Column column, Registers<count>) {
  const Floats scale = spread(column.factor);
  float *const scores = s.scores + column.v, *const dscores = s.dscores + column.v;
  const float* const factor = s.factor + column.v;
  const Floats one_over_cap = spread(asks == Asks::all ? 1 / cap_of(s.job) : 0.0F);
  Queries<count> lse, delta;
  for (int i = 0; i < count; ++i) {
    lse.of[i] = read(s.lse + column.v + i * width);
    delta.of[i] = read(s.delta + column.v + i * width);
  }
  for (Index k = 0; k < column.keys; ++k)
    for (int i = 0; i < count; ++i) {
      const Index at = k * tile_queries + i * width;
      const Floats p = exp2(read(scores + at) - lse.of[i]);
      if constexpr (asks == Asks::nothing) {
        write(scores + at, p);
        write(dscores + at, p * (read(dscores + at) - delta.of[i]) * scale);
        continue;
      }
      const Floats kept = asks == Asks::drops || s.job.dropout.wanted ? read(factor + at) : spread(1.0F);
      Floats ds = p * added_product(read(dscores + at), kept, -delta.of[i]) * scale;
      if constexpr (asks == Asks::all) ds = ds * slope_of(read(scores + at), one_over_cap);
      write(scores + at, p * kept);
      write(dscores + at, ds);
    }
}
/// Lanes without a query become 0, and rows that products take beyond the last key.
void clear_lanes(const Sweep& s, Index queries, Index keys) {
  for (Index v = 0; v < tile_queries; v += width) {
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

/// Queries and what came back for them as rows, and turned so that they lie along the lanes; there the
/// queries are scaled to powers of two.
struct Floating {
  static void load_queries(const Sweep& s, Range queries) {
    const AttentionJob& job = s.job;
    const Widen plain = {queries.size(), job.d, s.step}, of_value = {queries.size(), job.d_value, s.step};
    const Widen scaled = {queries.size(), job.d, s.step, job.scale * log2_e};
    const Index q = s.query_offset(job.q, queries.from), dout = s.query_offset(job.dout, queries.from);
    widen_rows(s.rows, job.q, q, scaled);
    transpose(s.q, s.rows, s.step, {queries.size(), s.padded});
    widen_rows(s.q_rows, job.q, q, plain);
    widen_rows(s.dout_rows, job.dout, dout, of_value);
    transpose(s.dout, s.dout_rows, s.step, {queries.size(), s.padded_value});
  }
  static void load_keys(const Sweep& s, Range keys) {
    const Index first = s.chunk.from + keys.from, to = keys.from * s.step;
    widen_rows(s.k + to, s.job.k, s.key_offset(s.job.k, first), {keys.size(), s.job.d, s.step});
    widen_rows(s.v + to, s.job.v, s.key_offset(s.job.v, first), {keys.size(), s.job.d_value, s.step});
  }
  static Range reach(Range keys, Index) { return keys; }
  static constexpr float before_bias(const AttentionJob&) { return 1; }
  static void score(const Sweep& s, const Meeting& at, Fetch* fetch) {
    const Index skipped = at.skipped * s.step, registers = at.registers();
    multiply<Start::zero>({s.scores, tile_queries}, at.keys, registers, ByRows{s.k + skipped, s.step},
                          {s.q, tile_queries}, s.job.d, fetch);
    multiply<Start::zero>({s.dscores, tile_queries}, at.keys, registers, ByRows{s.v + skipped, s.step},
                          {s.dout, tile_queries}, s.job.d_value, fetch);
  }
  static void differentiate(const Sweep& s, const Meeting& at) {
    const float factor = s.job.dbias.wanted ? 1 : s.job.scale;
    each_registers(at.queries, [&](Index v, auto registers) {
      const Column column = {v, at.keys, factor};
      if (s.job.cap > 0)
        differentiate_columns<Asks::all>(s, column, registers);
      else if (s.job.dropout.wanted)
        differentiate_columns<Asks::drops>(s, column, registers);
      else
        differentiate_columns<Asks::nothing>(s, column, registers);
    });
    clear_lanes(s, at.queries, at.keys);
  }
  static void settle(const Sweep& s, const Meeting& at) {
    if (s.job.dbias.wanted && s.job.scale != 1) scale_dscores(s, at.keys);
  }
  static void add_to_keys(const Sweep& s, const Meeting& at, float* dk, float* dv) {
    multiply<Start::more>({dv, s.step}, at.keys, s.padded_value / width, ByRows{s.scores, tile_queries},
                          {s.dout_rows, s.step}, at.queries);
    multiply<Start::more>({dk, s.step}, at.keys, s.padded / width, ByRows{s.dscores, tile_queries},
                          {s.q_rows, s.step}, at.queries);
  }
  static void add_to_queries(const Sweep& s, const Meeting& at, float* dq) {
    multiply<Start::more>({dq, s.step}, at.queries, s.padded / width, ByColumns{s.dscores, tile_queries},
                          {s.k + at.skipped * s.step, s.step}, at.keys);
  }
};

}  // namespace

void attention_backward(const AttentionJob& job, AttentionShare share, const AttentionTask& task,
                        float* workspace) {
  backward<Floating>(job, share, task, workspace);
}

}  // namespace weft::fast::WEFT_ISA
