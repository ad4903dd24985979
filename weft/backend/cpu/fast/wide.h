// Several sixteens of a row at once, step by step together: so that as many chains of steps are under way as
// the processor has room for. Long chains one after the other leave it waiting for each. For sources of
// loops/ only.
#pragma once

#include "weft/backend/cpu/fast/order.h"

namespace weft::fast::WEFT_ISA {

/// As many sixteens as have room in the registers; two, which is a pair, is none at once.
inline constexpr int at_once = width == 16 ? 8 : 2;
inline constexpr std::int64_t broad = at_once * lanes;
inline constexpr std::int64_t ahead = 1024;  // elements
using Wide = Many<at_once * parts>;

/// Where several sixteens start: every operand f32, or every operand bf16 and each thirty-two even ones
/// first.
template <Walk walk>
struct Broad {
  std::int64_t at;
};

[[gnu::always_inline]] inline Wide load(In in, Broad<Walk::f32> at) {
  return read<Wide>(static_cast<const float*>(in.from) + at.at);
}
[[gnu::always_inline]] inline Wide load(In in, Broad<Walk::bf16> at) {
  Wide r;
  for (int k = 0; k < at_once; k += 2) {
    // The steps take as long as the memory does: what comes later is asked for meanwhile.
    __builtin_prefetch(static_cast<const bf16*>(in.from) + at.at + ahead + k * lanes);
    const F even = load(in, Evens{at.at + k * lanes});
    const F odd = load(in, Odds{at.at + k * lanes});
    for (int i = 0; i < parts; ++i) {
      r.part[k * parts + i] = even.part[i];
      r.part[(k + 1) * parts + i] = odd.part[i];
    }
  }
  return r;
}
template <Walk walk>
[[gnu::always_inline]] inline Wide along(const float* from, Broad<walk> at) {
  return read<Wide>(from + at.at);
}
/// The sixteen that stand k-th.
[[gnu::always_inline]] inline F one_of(const Wide& x, int k) {
  F r;
  for (int i = 0; i < parts; ++i) r.part[i] = x.part[k * parts + i];
  return r;
}
[[gnu::always_inline]] inline void store(Out out, Broad<Walk::f32> at, const Wide& x) {
  for (int k = 0; k < at_once; k += 2) store_two(out, at.at + k * lanes, one_of(x, k), one_of(x, k + 1));
}
[[gnu::always_inline]] inline void store(Out out, Broad<Walk::bf16> at, const Wide& x) {
  for (int k = 0; k < at_once; k += 2) store_halves(out, at.at + k * lanes, one_of(x, k), one_of(x, k + 1));
}

/// An operand of a walk that is settled: its type is no question any more.
template <Walk walk, class Operand>
[[gnu::always_inline]] inline Operand settled(Operand x) {
  if constexpr (walk == Walk::bf16) x.type = Type::bf16;
  if constexpr (walk == Walk::f32) x.type = Type::f32;
  return x;
}

/// map() with its walk settled, from element i on.
template <Walk walk, int count, class Value>
[[gnu::always_inline]] inline void map_as(const Outs<count>& to, std::int64_t n, const Value& value,
                                          std::int64_t i = 0) {
  Outs<count> outs = to;
  for (Out& out : outs.of) out = settled<walk>(out);
  if constexpr (walk == Walk::bf16)
    for (; i + pair <= n; i += pair) map_two(outs, Evens{i}, Odds{i}, value);
  else if constexpr (walk == Walk::f32)
    for (; i + pair <= n; i += pair) map_two(outs, Plain{i}, Plain{i + lanes}, value);
  const auto put = [&](auto at) {
    const Values<count> x = value(at);
    for (int k = 0; k < count; ++k) store(outs.of[k], at, x.of[k]);
  };
  if constexpr (walk == Walk::mixed)
    for (; i + lanes <= n; i += lanes) put(Whole{i});
  // One piece of code for the few that are left, be it sixteen.
  for (; i < n; i += lanes) put(Tail{i, n - i < lanes ? n - i : lanes});
}
/// A row becomes value(at), several sixteens at once where that is worth it.
template <Walk walk, bool several, class Value>
[[gnu::always_inline]] inline void map_at_once(Out out, std::int64_t n, const Value& value) {
  std::int64_t i = 0;
  if constexpr (several && at_once > 2)
    for (; i + broad <= n; i += broad) store(out, Broad<walk>{i}, value(Broad<walk>{i}));
  map_as<walk>(
      Outs<1>{{out}}, n, [&](auto at) { return Values<1>{{value(at)}}; }, i);
}

}  // namespace weft::fast::WEFT_ISA
