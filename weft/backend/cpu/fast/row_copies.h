// Rows of a tensor as products of small panels read and write them: widened to f32, turned, and back again.
// For sources of loops/ only.
#pragma once

#include "weft/backend/cpu/fast/attention_job.h"
#include "weft/backend/cpu/fast/gemm_tile.h"
#include "weft/backend/cpu/fast/lanes.h"

namespace weft::fast::WEFT_ISA {

using Index = std::int64_t;

[[gnu::always_inline]] inline Floats spread(float x) { return x - Floats{}; }
[[gnu::always_inline]] inline Index least(Index a, Index b) { return a < b ? a : b; }
[[gnu::always_inline]] inline Index most(Index a, Index b) { return a > b ? a : b; }
[[gnu::always_inline]] inline Index round_up(Index x, Index unit) { return (x + unit - 1) / unit * unit; }

/// Where rows start and end: keys or queries, or steps.
struct Range {
  Index from = 0, to = 0;
  [[gnu::always_inline]] Index size() const { return to - from; }
  [[gnu::always_inline]] bool empty() const { return to <= from; }
  [[gnu::always_inline]] Range both(Range other) const {
    return {most(from, other.from), least(to, other.to)};
  }
};

template <class T>
[[gnu::always_inline]] inline void widen_row(float* to, const T* from, Index d, float factor) {
  Index c = 0;
  for (; c + lanes <= d; c += lanes) store(to + c, load(from + c) * all(factor));
  if (c < d) store(to + c, load(from, Tail{c, d - c}) * all(factor));
}

/// Rows of d elements as f32 times factor, `step` floats apart; each ends in zeros up to a multiple of
/// lanes.
struct Widen {
  Index count, d, step;
  float factor = 1;
};
template <class T>
[[gnu::noinline]] void widen_rows(float* to, const T* from, Index step, Widen how) {
  for (Index i = 0; i < how.count; ++i) widen_row(to + i * how.step, from + i * step, how.d, how.factor);
}
inline void widen_rows(float* to, const AttentionRows& rows, Index offset, Widen how) {
  if (rows.type == Element::f32) widen_rows(to, static_cast<const float*>(rows.at) + offset, rows.s, how);
  if (rows.type == Element::bf16) widen_rows(to, static_cast<const bf16*>(rows.at) + offset, rows.s, how);
  if (rows.type == Element::f16) widen_rows(to, static_cast<const f16*>(rows.at) + offset, rows.s, how);
}

/// to = from, whose rows are `step` floats apart, in the tensor's type.
struct Narrow {
  Index count, d, step;
};
template <class T>
[[gnu::noinline]] void narrow_rows(T* to, Index step, const float* from, Narrow how) {
  // Rows lie pages apart, and what is written next is not asked for by itself.
  constexpr Index ahead = 12, line = 64 / Index(sizeof(T));
  for (Index i = 0; i < how.count; ++i) {
    T* row = to + i * step;
    const float* source = from + i * how.step;
    if (i + ahead < how.count)
      for (Index c = 0; c < how.d; c += line) __builtin_prefetch(row + ahead * step + c, 1);
    each(how.d, [&](auto where) { store(row, where, load(source, where)); });
  }
}
inline void narrow_rows(const AttentionRows& rows, Index offset, const float* from, Narrow how) {
  if (rows.type == Element::f32) narrow_rows(static_cast<float*>(rows.at) + offset, rows.s, from, how);
  if (rows.type == Element::bf16) narrow_rows(static_cast<bf16*>(rows.at) + offset, rows.s, from, how);
  if (rows.type == Element::f16) narrow_rows(static_cast<f16*>(rows.at) + offset, rows.s, from, how);
}

/// Some rows of a tensor that will be read, over so many tiles of products.
struct OverTiles {
  Index offset, rows, tiles;
};
inline void fetch_over(Fetch& fetch, const AttentionRows& rows, Index d, OverTiles how) {
  if (how.rows <= 0) return;
  const Index size = rows.type == Element::f32 ? 4 : 2;
  fetch.from[fetch.count++] = {static_cast<const char*>(rows.at) + how.offset * size, rows.s * size,
                               (d * size + 63) / 64, how.rows, (how.rows + how.tiles - 1) / how.tiles};
}

/// to[c][i] = from[i][c]; columns are a multiple of lanes. Rows i beyond the count are cleared in both,
/// up to a register's border.
struct Transposed {
  Index count, columns;
};
inline void transpose(float* to, Index to_step, float* from, Index step, Transposed how) {
  const Index whole = round_up(how.count, width);
  for (Index i = how.count; i < whole; ++i)
    for (Index c = 0; c < how.columns; c += width) write(from + i * step + c, Floats{});
  for (Index i = 0; i < whole; i += width)
    for (Index c = 0; c < how.columns; c += width)
      transpose_square(to + c * to_step + i, to_step, from + i * step + c, step);
}

}  // namespace weft::fast::WEFT_ISA
