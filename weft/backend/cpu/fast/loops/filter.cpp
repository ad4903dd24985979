// Filters that look back a few steps, and silu of what they give. Four steps go at once: what a step reads
// the next three read too, and weights are read once for all.
#include "weft/backend/cpu/fast/math.h"

namespace weft::fast::WEFT_ISA {
namespace {

constexpr int at_once = int(filter_steps);

[[gnu::always_inline]] inline In row_of(const InRows& rows, std::int64_t i) {
  return {static_cast<const char*>(rows.first.from) + i * rows.step, rows.first.type};
}
[[gnu::always_inline]] inline Out row_of(const OutRows& rows, std::int64_t i) {
  return {static_cast<char*>(rows.first.to) + i * rows.step, rows.first.type, rows.first.past};
}

/// Up to four steps, from `first` on; some of what they read may lie before all steps, and is zero then.
struct Block {
  const FilterRows& rows;
  std::int64_t first;
  int steps;

  /// use(step of the block, row of x) for all that tap j reads.
  template <int taps, class Use>
  [[gnu::always_inline]] void each_read(int j, const Use& use) const {
    const std::int64_t from = first - of<taps>() + 1 + j;
#pragma GCC unroll 4
    for (int t = 0; t < at_once; ++t)
      if (t < steps && from + t >= -rows.before) use(t, row_of(rows.x, from + t));
  }
  /// Where the number of taps is known, loops over them are written out.
  template <int taps>
  [[gnu::always_inline]] int of() const {
    return taps > 0 ? taps : int(rows.taps);
  }
  template <int taps, class At>
  [[gnu::always_inline]] void sum(At at, F (&sums)[at_once]) const {
    for (F& one : sums) one = all(0.0F);
    for (int j = 0; j < of<taps>(); ++j) {
      const F weight = load(rows.weight + j * rows.weight_step, at);
      each_read<taps>(j, [&](int t, In x) { sums[t] = fused(weight, load(x, at), sums[t]); });
    }
  }
};

[[gnu::always_inline]] inline F share(F x) { return share_beside_power(all(-log2_of_e) * x); }

template <int taps>
[[gnu::always_inline]] inline void forward_block(const OutRows& y, const Block& block, std::int64_t n) {
  each(n, [&](auto at) {
    F sums[at_once];
    block.sum<taps>(at, sums);
#pragma GCC unroll 4
    for (int t = 0; t < at_once; ++t)
      if (t < block.steps) store(row_of(y, block.first + t), at, sums[t] * share(sums[t]));
  });
}

[[gnu::flatten]] void forward(OutRows y, const FilterRows& rows, std::int64_t n) {
  for (std::int64_t i = 0; i < rows.count; i += at_once) {
    const std::int64_t left = rows.count - i;
    const Block block = {rows, i, left < at_once ? int(left) : at_once};
    if (rows.taps == 4)
      forward_block<4>(y, block, n);
    else
      forward_block<0>(y, block, n);
  }
}

/// The slopes of a block's sums, and those of the steps behind it, which came first: a row each in room.
struct SlopeRoom {
  float* at;
  std::int64_t step;
  [[gnu::always_inline]] float* row(std::int64_t i) const { return at + i * step; }
};

/// d [4 + taps - 1, n]: those behind the block move on, and the block's own are written before them.
template <int taps, class At>
[[gnu::always_inline]] inline void take_slopes(const FilterSlopes& to, const Block& block,
                                               const SlopeRoom& room, At at) {
  const Whole here = {at.at};
  for (std::int64_t k = block.of<taps>() - 2; k >= 0; --k)
    store(room.row(k + block.steps), here, load(room.row(k), here));
  F sums[at_once];
  block.sum<taps>(at, sums);
#pragma GCC unroll 4
  for (int t = 0; t < at_once; ++t) {
    if (t >= block.steps) continue;
    const F s = share(sums[t]);
    const F slope = fused(sums[t] * s, all(1.0F) - s, s);
    store(room.row(t), here, load(row_of(to.dy, block.first + t), at) * slope);
  }
}

template <int taps, class At>
[[gnu::always_inline]] inline void give_slopes(const FilterSlopes& to, const Block& block,
                                               const SlopeRoom& room, At at) {
  const Whole here = {at.at};
  const int count = block.of<taps>();
  F dx[at_once];
  for (F& one : dx) one = all(0.0F);
  for (int j = 0; j < count; ++j) {
    const F weight = load(block.rows.weight + j * block.rows.weight_step, at);
    float* const dweight = to.dweight + j * block.rows.weight_step;
    F sum = load(dweight, at);
    block.each_read<taps>(j, [&](int t, In x) { sum = fused(load(room.row(t), here), load(x, at), sum); });
    store(dweight, at, sum);
#pragma GCC unroll 4
    for (int t = 0; t < at_once; ++t)
      if (t < block.steps) dx[t] = fused(weight, load(room.row(t + count - 1 - j), here), dx[t]);
  }
#pragma GCC unroll 4
  for (int t = 0; t < at_once; ++t)
    if (t < block.steps) store(row_of(to.dx, block.first + t), at, dx[t]);
}

/// From the last step to the first.
template <int taps>
[[gnu::always_inline]] inline void backward_as(const FilterSlopes& to, const FilterRows& rows,
                                               std::int64_t n) {
  const SlopeRoom room = {to.room, (n + lanes - 1) / lanes * lanes};
  for (std::int64_t i = 0; i < (rows.taps - 1) * room.step; i += lanes) store(room.at + i, all(0.0F));
  // What lies behind gives slopes to the last steps, and its own to whoever walks there.
  for (std::int64_t i = rows.count + rows.after - 1; i >= rows.count; --i) {
    const Block block = {rows, i, 1};
    each(n, [&](auto at) { take_slopes<taps>(to, block, room, at); });
  }
  for (std::int64_t end = rows.count; end > 0;) {
    const int steps = end < at_once ? int(end) : at_once;
    const Block block = {rows, end - steps, steps};
    each(n, [&](auto at) {
      take_slopes<taps>(to, block, room, at);
      give_slopes<taps>(to, block, room, at);
    });
    end -= steps;
  }
}

[[gnu::flatten]] void backward(const FilterSlopes& to, const FilterRows& rows, std::int64_t n) {
  if (rows.taps == 4)
    backward_as<4>(to, rows, n);
  else
    backward_as<0>(to, rows, n);
}

}  // namespace

extern const FilterLoops filters;
const FilterLoops filters = {.forward = forward, .backward = backward};

}  // namespace weft::fast::WEFT_ISA
