// What forward and backward share, of the delta rule and of state spaces. Over the steps i of a chunk, S0 the
// memory before it and G the running sum of log a:
//
//   fade_ij = e^(G_i - G_j)  (j <= i),   gamma_i = e^(G_i),   rest_i = e^(G_last - G_i)
//   r_i = v_i - gamma_i S0^T k_i - sum over j < i of fade_ij (k_i k_j) u_j,   u_i = b_i r_i
//   S = gamma_last S0 + sum over i of rest_i k_i u_i^T
//
// In a state space u_i = t_i v_i. Every factor of these is at most 1: nothing is ever divided by gamma, and
// what is forgotten at once is 0. For sources of loops/ only.
#pragma once

#include "weft/backend/cpu/fast/delta_job.h"
#include "weft/backend/cpu/fast/math.h"
#include "weft/backend/cpu/fast/row_copies.h"

namespace weft::fast::WEFT_ISA {

/// Rows of whole tiles, whatever the number of columns: what goes beyond them stays in the last block.
inline constexpr Index block_rows = tile_slack;
static_assert(delta_chunk % lanes == 0);

/// One task's state, in its workspace; of the chunk and head at hand.
struct Chunk {
  const DeltaJob& job;
  const DeltaTask& task;
  float* room;
  Index padded, padded_value;  // columns of a row's copy
  Index first = 0, count = 0;  // steps of the chunk
  Index head = 0;
  float *q = nullptr, *k = nullptr;
  float *gamma, *rest, *high, *low, *b, *a_terms, *c_terms, *slopes, *last;

  Chunk(const DeltaJob& j, const DeltaTask& t, float* workspace)
      : job(j),
        task(t),
        room(workspace),
        padded(round_up(j.d, lanes)),
        padded_value(round_up(j.d_value, lanes)) {
    constexpr Index rows = delta_chunk + tile_slack;
    float* at = workspace + j.places.factors;
    for (float** one : {&gamma, &rest, &high, &low, &b, &a_terms, &c_terms, &slopes}) {
      *one = at;
      at += rows;
    }
    last = at;
  }
  void go_to(Index step) {
    first = step;
    count = least(delta_chunk, job.s - first);
    q = at(job.places.q) + first * job.places.kept_step;
    k = at(job.places.k) + first * job.places.kept_step;
  }
  float* at(Index place) const { return room + place; }
  float* numbers(Index place) const { return room + place + head * job.numbers + first; }
  Index index() const { return first / delta_chunk; }
  Index memory_size() const { return padded * job.step_value; }
  Index held_size() const { return (padded + tile_slack) * job.step_value; }  // of one that is added to
  Index group_offset(const AttentionRows& of) const {
    return first * of.s + task.sequence * of.b + task.group * of.g;
  }
  Index head_offset(const AttentionRows& of) const { return group_offset(of) + (task.head + head) * of.r; }
  Index registers() const { return padded / width; }
  Index registers_value() const { return padded_value / width; }
};

inline void clear(float* to, Index count) {
  for (Index i = 0; i < count; i += lanes) store(to + i, all(0.0F));
}
/// body(first row, rows) of whole blocks.
template <class Body>
[[gnu::always_inline]] inline void each_block(Index count, const Body& body) {
  for (Index p = 0; p < count; p += block_rows) body(p, least(block_rows, count - p));
}

// ---- numbers of a step

/// log(1 + e^x)
[[gnu::always_inline]] inline F softplus(F x) {
  // log(1 + e) = 2 atanh(e / (2 + e)), whose argument is at most a third
  const F e = exponential(all(0.0F) - absolute(x));
  const F w = e / (all(2.0F) + e);
  constexpr float c[] = {2.0F, 2.0F / 3, 2.0F / 5, 2.0F / 7, 2.0F / 9, 2.0F / 11, 2.0F / 13, 2.0F / 15};
  return fused(w, polynomial(w * w, c), most(all(0.0F), x));
}

/// log a, and b or t, of all steps and heads.
[[gnu::noinline]] inline void prepare_numbers(const Chunk& c) {
  const DeltaPlaces& at = c.job.places;
  for (Index head = 0; head < c.task.heads; ++head) {
    const float slowness = c.at(at.slowness)[head];
    const F slow = all(slowness < 1e30F ? slowness : 1e30F);
    const Index first = head * c.job.numbers;
    for (Index i = first; i < first + c.job.numbers; i += lanes) {
      const F time = softplus(load(c.at(at.raw) + i));
      store(c.at(at.log_keep) + i, most(all(-1e30F), all(0.0F) - slow * time));
      store(c.at(at.rate) + i, c.job.corrects ? sigmoid(load(c.at(at.rate) + i)) : time);
    }
  }
}

/// G of the head in two floats, whose differences are as exact as what is next to them may be; gamma, rest
/// and b, or t.
[[gnu::noinline]] inline void sum_logs(const Chunk& c) {
  const float* log_keep = c.numbers(c.job.places.log_keep);
  const float* rate = c.numbers(c.job.places.rate);
  double sum = 0;
  for (Index i = 0; i < round_up(c.count, lanes); ++i) {
    if (i < c.count) sum += double(log_keep[i]);
    c.high[i] = float(sum);
    c.low[i] = float(sum - double(c.high[i]));
    c.b[i] = i < c.count ? rate[i] : 0;
  }
  const F high = all(c.high[c.count - 1]), low = all(c.low[c.count - 1]);
  for (Index i = 0; i < c.count; i += lanes) {
    store(c.gamma + i, exponential(load(c.high + i)));
    store(c.rest + i, exponential((high - load(c.high + i)) + (low - load(c.low + i))));
  }
  const Index rows = most(c.padded, c.padded_value) + tile_slack;
  for (Index i = 0; i < rows; ++i) c.last[i] = c.gamma[c.count - 1];
}

/// Where a row's diagonal is.
[[gnu::always_inline]] inline I up_to(Index column, Index row) {
  F number;
  for (int i = 0; i < parts; ++i)
    for (int l = 0; l < width; ++l) number.part[i][l] = float(i * width + l);
  return number < all(float(row - column) + 0.5F);
}
/// use(place, column, fade) for all places of the square; fade is 0 beyond the diagonal.
template <class Use>
[[gnu::always_inline]] inline void each_fade(const Chunk& c, const Use& use) {
  for (Index i = 0; i < c.count; ++i) {
    const F high = all(c.high[i]), low = all(c.low[i]);
    for (Index j = 0; j < c.count; j += lanes) {
      F fade = all(0.0F);
      if (j <= i) {
        const F log = (high - load(c.high + j)) + (low - load(c.low + j));
        // What is below the least number that is not denormal is of no account, and slow.
        fade = choose(log < all(-87.0F), all(0.0F), exponential(log));
        fade = choose(up_to(j, i), fade, all(0.0F));
      }
      use(i * delta_square + j, j, fade);
    }
  }
}
/// fade, and with it p = fade qk and n = -fade kk b, of which the diagonal is 0.
[[gnu::noinline]] inline void fade_products(const Chunk& c) {
  const DeltaPlaces& at = c.job.places;
  each_fade(c, [&](Index place, Index j, F fade) {
    store(c.at(at.fade) + place, fade);
    store(c.at(at.p) + place, fade * load(c.at(at.qk) + place));
    store(c.at(at.n) + place, all(0.0F) - fade * load(c.at(at.kk) + place) * load(c.b + j));
  });
  for (Index i = 0; i < c.count; ++i) c.at(at.n)[i * delta_square + i] = 0;
}

// ---- triangles

template <int registers>
[[gnu::always_inline]] inline void add_rows(float* x, Index step, const float* n, Index n_step, Range rows) {
  Floats sum[registers];
  for (int v = 0; v < registers; ++v) sum[v] = read(x + v * width);
  for (Index j = rows.from; j < rows.to; ++j) {
    const Floats factor = spread(n[j * n_step]);
    for (int v = 0; v < registers; ++v)
      sum[v] = added_product(factor, read(x + j * step + v * width), sum[v]);
  }
  for (int v = 0; v < registers; ++v) write(x + v * width, sum[v]);
}
/// x_i += sum over j of n_ij x_j in a block of rows, in order of rows or the other way.
enum class Way : std::uint8_t { down, up };
template <Way way, int registers>
[[gnu::noinline]] void substitute_columns(float* x, Index step, const float* n, Index count) {
  for (Index k = 0; k < count; ++k) {
    const Index i = way == Way::down ? k : count - 1 - k;
    if constexpr (way == Way::down)
      add_rows<registers>(x + i * step, step, n + i * delta_square + i, 1, {-i, 0});
    else
      add_rows<registers>(x + i * step, step, n + i * delta_square + i, delta_square, {1, count - i});
  }
}
template <Way way>
inline void substitute(float* x, Index step, const float* n, Index count, Index registers) {
  for (; registers >= 8; registers -= 8, x += 8 * width) substitute_columns<way, 8>(x, step, n, count);
  for (; registers >= 2; registers -= 2, x += 2 * width) substitute_columns<way, 2>(x, step, n, count);
  if (registers > 0) substitute_columns<way, 1>(x, step, n, count);
}

/// x_i += sum over j < i of n_ij x_j, from the first row to the last.
inline void solve_down(const Chunk& c, float* x) {
  const float* n = c.at(c.job.places.n);
  const Index step = c.job.step_value, registers = c.registers_value();
  each_block(c.count, [&](Index p, Index rows) {
    multiply<Start::more>({x + p * step, step}, rows, registers, ByRows{n + p * delta_square, delta_square},
                          {x, step}, p);
    substitute<Way::down>(x + p * step, step, n + p * delta_square + p, rows, registers);
  });
}
/// x_i += sum over j > i of n_ji x_j, from the last row to the first.
inline void solve_up(const Chunk& c, float* x) {
  const float* n = c.at(c.job.places.n);
  const Index step = c.job.step_value, registers = c.registers_value();
  for (Index p = (c.count - 1) / block_rows * block_rows; p >= 0; p -= block_rows) {
    const Index rows = least(block_rows, c.count - p), end = p + rows;
    if (end < c.count)
      multiply<Start::more>({x + p * step, step}, rows, registers,
                            ByColumns{n + end * delta_square + p, delta_square}, {x + end * step, step},
                            c.count - end);
    substitute<Way::up>(x + p * step, step, n + p * delta_square + p, rows, registers);
  }
}

// ---- a chunk's products

/// The lower triangle of to [chunk, chunk] = a turned, at least.
inline void multiply_lower(const Chunk& c, float* to, ByRows a, const float* turned, Index depth) {
  each_block(c.count, [&](Index p, Index rows) {
    multiply<Start::zero>({to + p * delta_square, delta_square}, rows, round_up(p + rows, lanes) / width,
                          a.from(p), {turned, delta_square}, depth);
  });
}

/// q (times the scale) and k of the group, and what all its heads share.
inline void load_group(const Chunk& c, float* qk) {
  const DeltaJob& job = c.job;
  const DeltaPlaces& at = job.places;
  widen_rows(c.q, job.q, c.group_offset(job.q), {c.count, job.d, job.step, job.scale});
  widen_rows(c.k, job.k, c.group_offset(job.k), {c.count, job.d, job.step});
  transpose(c.at(at.k_turned), delta_square, c.k, job.step, {c.count, c.padded});
  if (job.corrects) multiply_lower(c, c.at(at.kk), {c.k, job.step}, c.at(at.k_turned), job.d);
  multiply_lower(c, qk, {c.q, job.step}, c.at(at.k_turned), job.d);
}

inline void load_values(const Chunk& c) {
  const DeltaJob& job = c.job;
  widen_rows(c.at(job.places.written), job.v, c.head_offset(job.v), {c.count, job.d_value, job.step_value});
}
/// r of the chunk, and u.
inline void correct(const Chunk& c, const float* memory, float* missing) {
  const DeltaJob& job = c.job;
  const Index step = job.step_value;
  float* written = c.at(job.places.written);
  multiply<Start::zero>({missing, step}, c.count, c.registers_value(), ByRows{c.k, job.step}, {memory, step},
                        job.d);
  load_values(c);
  for (Index i = 0; i < c.count; ++i) {
    const F gamma = all(-c.gamma[i]);
    for (Index v = i * step; v < i * step + c.padded_value; v += lanes)
      store(missing + v, added_product(gamma, load(missing + v), load(written + v)));
  }
  solve_down(c, missing);
}
/// A state space's factors of what is written, into slopes.
inline void weigh_rows(const Chunk& c) {
  for (Index i = 0; i < c.count; i += lanes) store(c.slopes + i, load(c.rest + i) * load(c.b + i));
}
/// to = factor of the row times from.
inline void scale_rows(const Chunk& c, float* to, const float* from, const float* factor) {
  for (Index i = 0; i < c.count; ++i) {
    const F by = all(factor[i]);
    for (Index v = i * c.job.step_value; v < i * c.job.step_value + c.padded_value; v += lanes)
      store(to + v, by * load(from + v));
  }
}
/// What the chunk's queries find in the memory and in u, or whatever p is for.
inline void answer(const Chunk& c, const float* memory) {
  const DeltaJob& job = c.job;
  const Index step = job.step_value, registers = c.registers_value();
  float *o = c.at(job.places.o), *p_rows = c.at(job.places.p);
  multiply<Start::zero>({o, step}, c.count, registers, ByRows{c.q, job.step}, {memory, step}, job.d);
  each_block(c.count, [&](Index p, Index rows) {
    multiply<Start::scaled>({o + p * step, step, c.gamma + p}, rows, registers,
                            ByRows{p_rows + p * delta_square, delta_square}, {c.at(job.places.written), step},
                            p + rows);
  });
  narrow_rows(job.o, c.head_offset(job.o), o, {c.count, job.d_value, step});
}
/// The memory behind the chunk, which takes u times a factor of each step. u is lost.
inline void remember(const Chunk& c, float* to, const float* from, const float* factor) {
  const DeltaJob& job = c.job;
  float* written = c.at(job.places.written);
  scale_rows(c, written, written, factor);
  if (to != from)
    for (Index i = 0; i < c.memory_size(); i += lanes) store(to + i, load(from + i));
  multiply<Start::scaled>({to, job.step_value, c.last}, c.padded, c.registers_value(),
                          ByColumns{c.k, job.step}, {written, job.step_value}, c.count);
}

inline void begin_chunk(Chunk& c, Index first) {
  c.go_to(first);
  load_group(c, c.at(c.job.places.qk));
}
inline void begin_head(Chunk& c, Index head) {
  c.head = head;
  sum_logs(c);
  fade_products(c);
}

}  // namespace weft::fast::WEFT_ISA
