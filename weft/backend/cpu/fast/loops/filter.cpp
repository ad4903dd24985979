// Filters that look back a few steps, and silu of what they give. Four steps go at once: what a step reads
// the next three read too, and weights are read once for all.
#include <type_traits>

#include "weft/backend/cpu/fast/math.h"
#include "weft/backend/cpu/fast/order.h"

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
  template <class Use>
  [[gnu::always_inline]] void each_read(int j, const Use& use) const {
    const std::int64_t from = first - rows.taps + 1 + j;
#pragma GCC unroll 4
    for (int t = 0; t < at_once; ++t)
      if (t < steps && from + t >= -rows.before) use(t, row_of(rows.x, from + t));
  }
  template <class At>
  [[gnu::always_inline]] void sum(At at, F (&sums)[at_once]) const {
    const F start = rows.bias == nullptr ? all(0.0F) : load(rows.bias, at);
    for (F& one : sums) one = start;
    for (int j = 0; j < rows.taps; ++j) {
      const F weight = load(rows.weight + j * rows.weight_step, at);
      each_read(j, [&](int t, In x) { sums[t] = fused(weight, load(x, at), sums[t]); });
    }
  }
};

[[gnu::always_inline]] inline F share(F x) { return share_beside_power(all(-log2_of_e) * x); }
/// x share(x); to be rounded to bf16, roughly.
template <bool rough>
[[gnu::always_inline]] inline F bent(F x) {
  if constexpr (!rough) return x * share(x);
  x = most(all(-127.9F / log2_of_e), x);
  return RoughSigmoid<parts>(x, all(-log2_of_e)).times(x);
}
/// Of x share(x).
[[gnu::always_inline]] inline F slope(F x) {
  const F s = share(x);
  return fused(x * s, all(1.0F) - s, s);
}

/// The usual case: four taps, all there, four steps, one type. What several steps read is read once.
constexpr int usual = 4, reach = usual + at_once - 1;
bool is_usual(const Block& block) {
  return block.rows.taps == usual && block.steps == at_once && block.first - usual + 1 >= -block.rows.before;
}
/// Rows that come next lie pages away, where the processor does not look by itself.
[[gnu::always_inline]] inline void ask_for(const InRows& rows, std::int64_t first, std::int64_t at) {
  const std::int64_t offset = at * size_of(rows.first.type);
  for (std::int64_t i = first; i < first + at_once; ++i)
    __builtin_prefetch(static_cast<const char*>(row_of(rows, i).from) + offset, 0, 2);
}
/// Numbers in their own order, for a walk in another.
template <class At>
[[gnu::always_inline]] inline F in_order(const float* from, At at) {
  return as_floats(load_words(reinterpret_cast<const std::uint32_t*>(from), at));
}
[[gnu::always_inline]] inline void keep_both(float* to, Evens at, Odds, F even, F odd) {
  for (int i = 0; i < parts; ++i) {
    Floats low, high;
    interleave(even.part[i], odd.part[i], low, high);
    write(to + at.at + 2 * i * width, low);
    write(to + at.at + (2 * i + 1) * width, high);
  }
}
[[gnu::always_inline]] inline void keep_both(float* to, Plain first, Plain second, F x, F y) {
  store(to + first.at, x);
  store(to + second.at, y);
}
/// What the sums of a block are made of.
struct Read {
  F x[reach], weight[usual], bias;

  [[gnu::always_inline]] F sum(int t) const {
    F sum = bias;
#pragma GCC unroll 4
    for (int j = 0; j < usual; ++j) sum = fused(weight[j], x[t + j], sum);
    return sum;
  }
};
template <class At>
[[gnu::always_inline]] inline F biased_start(const Block& block, At at) {
  return block.rows.bias == nullptr ? all(0.0F) : in_order(block.rows.bias, at);
}
template <class At>
[[gnu::always_inline]] inline void load_usual(const Block& block, At at, F bias, Read& read) {
  read.bias = bias;
#pragma GCC unroll 8
  for (int i = 0; i < reach; ++i) read.x[i] = load(row_of(block.rows.x, block.first - usual + 1 + i), at);
#pragma GCC unroll 4
  for (int j = 0; j < usual; ++j)
    read.weight[j] = in_order(block.rows.weight + j * block.rows.weight_step, at);
}

template <bool rough>
[[gnu::noinline]] void forward_block(const OutRows& y, const Block& block, std::int64_t n) {
  each(
      n, [&](auto at) __attribute__((always_inline)) {
        F sums[at_once];
        block.sum(at, sums);
#pragma GCC unroll 4
        for (int t = 0; t < at_once; ++t)
          if (t < block.steps) store(row_of(y, block.first + t), at, bent<rough>(sums[t]));
      });
}
template <Walk walk>
[[gnu::noinline, gnu::flatten]] void forward_usual(const OutRows& y, const Block& block, std::int64_t n) {
  const Outs<at_once> to = {{row_of(y, block.first), row_of(y, block.first + 1), row_of(y, block.first + 2),
                             row_of(y, block.first + 3)}};
  map(to, walk, n, [&](auto at) {
    Read read;
    if constexpr (!std::is_same_v<decltype(at), Odds>) ask_for(block.rows.x, block.first + at_once, at.at);
    load_usual(block, at, biased_start(block, at), read);
    Values<at_once> values;
#pragma GCC unroll 4
    for (int t = 0; t < at_once; ++t) values.of[t] = bent<walk == Walk::bf16>(read.sum(t));
    return values;
  });
}

void forward(OutRows y, const FilterRows& rows, std::int64_t n) {
  const Walk walk = walk_of(rows.x.first.type, y.first.type);
  for (std::int64_t i = 0; i < rows.count; i += at_once) {
    const std::int64_t left = rows.count - i;
    const Block block = {rows, i, left < at_once ? int(left) : at_once};
    if (walk == Walk::bf16 && is_usual(block))
      forward_usual<Walk::bf16>(y, block, n);
    else if (walk == Walk::f32 && is_usual(block))
      forward_usual<Walk::f32>(y, block, n);
    else if (walk == Walk::bf16)
      forward_block<true>(y, block, n);
    else
      forward_block<false>(y, block, n);
  }
}

/// The slopes of a block's sums, and those of the steps behind it, which came first: a row each in room.
struct SlopeRoom {
  float* at;
  std::int64_t step;
  [[gnu::always_inline]] float* row(std::int64_t i) const { return at + i * step; }
};

/// d [4 + taps - 1, n]: those behind the block move on, and the block's own are written before them.
template <class At>
[[gnu::always_inline]] inline void take_slopes(const FilterSlopes& to, const Block& block,
                                               const SlopeRoom& room, At at) {
  const Whole here = {at.at};
  for (std::int64_t k = int(block.rows.taps) - 2; k >= 0; --k)
    store(room.row(k + block.steps), here, load(room.row(k), here));
  F sums[at_once];
  block.sum(at, sums);
#pragma GCC unroll 4
  for (int t = 0; t < at_once; ++t) {
    if (t >= block.steps) continue;
    store(room.row(t), here, load(row_of(to.dy, block.first + t), at) * slope(sums[t]));
  }
}

template <class At>
[[gnu::always_inline]] inline void give_slopes(const FilterSlopes& to, const Block& block,
                                               const SlopeRoom& room, At at) {
  const Whole here = {at.at};
  const int count = int(block.rows.taps);
  F dx[at_once];
  for (F& one : dx) one = all(0.0F);
  if (block.rows.bias != nullptr) {
    F sum = load(to.dbias, at);
    for (int t = 0; t < block.steps; ++t) sum = sum + load(room.row(t), here);
    store(to.dbias, at, sum);
  }
  for (int j = 0; j < count; ++j) {
    const F weight = load(block.rows.weight + j * block.rows.weight_step, at);
    float* const dweight = to.dweight + j * block.rows.weight_step;
    F sum = load(dweight, at);
    block.each_read(j, [&](int t, In x) { sum = fused(load(room.row(t), here), load(x, at), sum); });
    store(dweight, at, sum);
#pragma GCC unroll 4
    for (int t = 0; t < at_once; ++t)
      if (t < block.steps) dx[t] = fused(weight, load(room.row(t + count - 1 - j), here), dx[t]);
  }
#pragma GCC unroll 4
  for (int t = 0; t < at_once; ++t)
    if (t < block.steps) store(row_of(to.dx, block.first + t), at, dx[t]);
}

/// Of sixteen channels: dx, the slopes that the block before reads, and what weights and bias have now.
struct Given {
  F dx[at_once], behind[usual - 1], dweight[usual], dbias;
};
template <bool biased, class At>
[[gnu::always_inline]] inline Given give(const FilterSlopes& to, const Block& block, const SlopeRoom& room,
                                         At at) {
  Read read;
  F d[reach];
  load_usual(block, at, biased ? in_order(block.rows.bias, at) : all(0.0F), read);
#pragma GCC unroll 4
  for (int t = 0; t < at_once; ++t) d[t] = load(row_of(to.dy, block.first + t), at) * slope(read.sum(t));
  Given r;
  if constexpr (biased) r.dbias = (((in_order(to.dbias, at) + d[0]) + d[1]) + d[2]) + d[3];
#pragma GCC unroll 4
  for (int k = 0; k < usual - 1; ++k) {
    d[at_once + k] = in_order(room.row(k), at);
    r.behind[k] = d[k];
  }
#pragma GCC unroll 4
  for (int j = 0; j < usual; ++j) {
    r.dweight[j] = in_order(to.dweight + j * block.rows.weight_step, at);
#pragma GCC unroll 4
    for (int t = 0; t < at_once; ++t) r.dweight[j] = fused(d[t], read.x[t + j], r.dweight[j]);
  }
#pragma GCC unroll 4
  for (int t = 0; t < at_once; ++t) {
    r.dx[t] = all(0.0F);
#pragma GCC unroll 4
    for (int j = 0; j < usual; ++j) r.dx[t] = fused(read.weight[j], d[t + usual - 1 - j], r.dx[t]);
  }
  return r;
}
template <bool biased, class A, class B>
[[gnu::always_inline]] inline void give_both(const FilterSlopes& to, const Block& block,
                                             const SlopeRoom& room, A a, B b) {
  ask_for(block.rows.x, block.first - reach, a.at);
  ask_for(to.dy, block.first - at_once, a.at);
  const Given first = give<biased>(to, block, room, a), second = give<biased>(to, block, room, b);
#pragma GCC unroll 4
  for (int t = 0; t < at_once; ++t)
    store_both(row_of(to.dx, block.first + t), a, b, first.dx[t], second.dx[t]);
#pragma GCC unroll 4
  for (int k = 0; k < usual - 1; ++k) keep_both(room.row(k), a, b, first.behind[k], second.behind[k]);
#pragma GCC unroll 4
  for (int j = 0; j < usual; ++j)
    keep_both(to.dweight + j * block.rows.weight_step, a, b, first.dweight[j], second.dweight[j]);
  if constexpr (biased) keep_both(to.dbias, a, b, first.dbias, second.dbias);
}
/// By itself without a bias: registers are short.
template <bool biased>
[[gnu::noinline]] void backward_usual(const FilterSlopes& to, const Block& block, const SlopeRoom& room,
                                      Walk walk, std::int64_t n) {
  std::int64_t i = 0;
  if (walk == Walk::bf16)
    for (; i + pair <= n; i += pair) give_both<biased>(to, block, room, Evens{i}, Odds{i});
  else
    for (; i + pair <= n; i += pair) give_both<biased>(to, block, room, Plain{i}, Plain{i + lanes});
  for (; i < n; i += lanes) {
    const Tail at = {i, n - i < lanes ? n - i : lanes};
    const Given one = give<biased>(to, block, room, at);
    for (int t = 0; t < at_once; ++t) store(row_of(to.dx, block.first + t), at, one.dx[t]);
    for (int k = 0; k < usual - 1; ++k) store(room.row(k), at, one.behind[k]);
    for (int j = 0; j < usual; ++j) store(to.dweight + j * block.rows.weight_step, at, one.dweight[j]);
    if constexpr (biased) store(to.dbias, at, one.dbias);
  }
}
[[gnu::noinline]] void backward_block(const FilterSlopes& to, const Block& block, const SlopeRoom& room,
                                      std::int64_t n) {
  each(
      n, [&](auto at) __attribute__((always_inline)) {
        take_slopes(to, block, room, at);
        give_slopes(to, block, room, at);
      });
}

/// From the last step to the first.
void backward(const FilterSlopes& to, const FilterRows& rows, std::int64_t n) {
  const SlopeRoom room = {to.room, (n + lanes - 1) / lanes * lanes};
  const Walk walk = walk_of(rows.x.first.type, to.dy.first.type, to.dx.first.type);
  for (std::int64_t i = 0; i < (rows.taps - 1) * room.step; i += lanes) store(room.at + i, all(0.0F));
  // What lies behind gives slopes to the last steps, and its own to whoever walks there.
  for (std::int64_t i = rows.count + rows.after - 1; i >= rows.count; --i) {
    const Block block = {rows, i, 1};
    each(n, [&](auto at) { take_slopes(to, block, room, at); });
  }
  for (std::int64_t end = rows.count; end > 0;) {
    const int steps = end < at_once ? int(end) : at_once;
    const Block block = {rows, end - steps, steps};
    if (walk != Walk::mixed && is_usual(block))
      (rows.bias == nullptr ? backward_usual<false> : backward_usual<true>)(to, block, room, walk, n);
    else
      backward_block(to, block, room, n);
    end -= steps;
  }
}

}  // namespace

extern const FilterLoops filters;
const FilterLoops filters = {.forward = forward, .backward = backward};

}  // namespace weft::fast::WEFT_ISA
