// What both forms go backward with. For sources of loops/ only.
#pragma once

#include "weft/backend/cpu/fast/delta_tile.h"

namespace weft::fast::WEFT_ISA {

[[gnu::always_inline]] inline float dot(const float* a, const float* b, Index count) {
  F products = all(0.0F);
  for (Index i = 0; i < count; i += lanes) products = fused(load(a + i), load(b + i), products);
  return sum(products);
}

/// The slope of what was written: y = dS^T k, first.
inline void from_memory(const Chunk& c, const float* dmemory, Fetch* fetch = nullptr) {
  const DeltaPlaces& at = c.job.places;
  multiply<Start::zero>({c.at(at.y), c.job.step_value}, c.count, c.registers_value(), ByRows{c.k, c.job.step},
                        {dmemory, c.job.step_value}, c.job.d, fetch);
}
/// And then y_i = rest_i y_i + sum over j >= i of p_ji do_j.
inline void from_answers(const Chunk& c) {
  const DeltaPlaces& at = c.job.places;
  const Index step = c.job.step_value;
  each_block(c.count, [&](Index p, Index rows) {
    multiply<Start::scaled>({c.at(at.y) + p * step, step, c.rest + p}, rows, c.registers_value(),
                            ByColumns{c.at(at.p) + p * delta_square + p, delta_square},
                            {c.at(at.dout) + p * step, step}, c.count - p);
  });
}

/// to_i += sum over j <= i of pairs_ij from_j, of rows of d.
inline void add_earlier(const Chunk& c, float* to, const float* pairs, const float* from) {
  const Index step = c.job.step;
  each_block(c.count, [&](Index p, Index rows) {
    multiply<Start::more>({to + p * step, step}, rows, c.registers(),
                          ByRows{pairs + p * delta_square, delta_square}, {from, step}, p + rows);
  });
}
/// to_i += sum over j >= i of pairs_ji from_j.
inline void add_later(const Chunk& c, float* to, const float* pairs, const float* from) {
  const Index step = c.job.step;
  each_block(c.count, [&](Index p, Index rows) {
    multiply<Start::more>({to + p * step, step}, rows, c.registers(),
                          ByColumns{pairs + p * delta_square + p, delta_square}, {from + p * step, step},
                          c.count - p);
  });
}

/// Slopes of log a: of step m from gamma_i with i >= m, from rest_i with i < m, from pairs j < m <= i, and
/// from gamma_last. No term is added that is taken away again.
inline void sum_slopes(const Chunk& c, float of_last) {
  float* const pairs = c.slopes;  // for each j, those with i >= m
  const float* rows = c.at(c.job.places.fade);
  const Index whole = round_up(c.count, lanes);
  float before = 0;
  for (Index i = 0; i < c.count; ++i) {
    const float own = c.c_terms[i];
    c.c_terms[i] = of_last;  // and of those before i
    of_last += own;
  }
  clear(pairs, whole);
  for (Index m = c.count - 1; m >= 0; --m) {
    F total = all(0.0F);
    for (Index j = 0; j < whole; j += lanes) {
      const F x = load(pairs + j) + load(rows + m * delta_square + j);
      store(pairs + j, x);
      total = total + choose(up_to(j, m - 1), x, all(0.0F));
    }
    before += c.a_terms[m];
    c.a_terms[m] = (before + c.c_terms[m]) + sum(total);
  }
}

}  // namespace weft::fast::WEFT_ISA
