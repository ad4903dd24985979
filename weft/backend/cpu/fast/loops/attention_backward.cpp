// Attention backward on numbers widened to f32.
#include "weft/backend/cpu/fast/attention_backward.h"

#include "weft/backend/cpu/fast/loops/attention.h"

namespace weft::fast::WEFT_ISA {

namespace {

/// Queries and what came back for them as rows, and turned so that they lie along the lanes; there the
/// queries are scaled to powers of two.
struct Floating {
  static void load_queries(const Sweep& s, Range queries) {
    const AttentionJob& job = s.job;
    const Widen plain = {queries.size(), job.d, s.step};
    const Widen scaled = {queries.size(), job.d, s.step, job.scale * log2_e};
    const Index q = s.query_offset(job.q, queries.from), dout = s.query_offset(job.dout, queries.from);
    widen_rows(s.rows, job.q, q, scaled);
    transpose(s.q, s.rows, s.step, {queries.size(), s.padded});
    widen_rows(s.q_rows, job.q, q, plain);
    widen_rows(s.dout_rows, job.dout, dout, plain);
    transpose(s.dout, s.dout_rows, s.step, {queries.size(), s.padded});
  }
  static void load_keys(const Sweep& s) {
    const Widen plain = {s.chunk.size(), s.job.d, s.step};
    widen_rows(s.k, s.job.k, s.key_offset(s.job.k, s.chunk.from), plain);
    widen_rows(s.v, s.job.v, s.key_offset(s.job.v, s.chunk.from), plain);
  }
  static Range reach(Range keys, Index) { return keys; }
  static void score(const Sweep& s, const Meeting& at, Fetch* fetch) {
    const Index skipped = at.skipped * s.step, registers = at.registers();
    multiply<Start::zero>({s.scores, tile_queries}, at.keys, registers, ByRows{s.k + skipped, s.step},
                          {s.q, tile_queries}, s.job.d, fetch);
    multiply<Start::zero>({s.dscores, tile_queries}, at.keys, registers, ByRows{s.v + skipped, s.step},
                          {s.dout, tile_queries}, s.job.d, fetch);
  }
  static constexpr float left(const AttentionJob&) { return 1; }
  static void settle(const Sweep&, const Meeting&) {}
  static void add_to_keys(const Sweep& s, const Meeting& at, float* dk, float* dv) {
    const Index columns = s.padded / width;
    multiply<Start::more>({dv, s.step}, at.keys, columns, ByRows{s.scores, tile_queries},
                          {s.dout_rows, s.step}, at.queries);
    multiply<Start::more>({dk, s.step}, at.keys, columns, ByRows{s.dscores, tile_queries}, {s.q_rows, s.step},
                          at.queries);
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
