// Several sixteens of a row at once, step by step together: so that as many chains of steps are under way as
// the processor has room for. Long chains one after the other leave it waiting for each. For sources of
// loops/ only.
#pragma once

#include <type_traits>

#include "weft/backend/cpu/fast/coming.h"

namespace weft::fast::WEFT_ISA {

/// Whether so many have room in the registers.
inline constexpr bool roomy = width == 16;
template <int sixteens>
using Wide = Many<sixteens * parts>;

/// Where several sixteens start: every operand f32, or every operand bf16 and each thirty-two even ones
/// first.
template <Walk walk, int sixteens>
struct Broad {
  std::int64_t at;
};

template <int sixteens>
[[gnu::always_inline]] inline Wide<sixteens> load(In in, Broad<Walk::f32, sixteens> at) {
  return read<Wide<sixteens>>(static_cast<const float*>(in.from) + at.at);
}
template <int sixteens>
[[gnu::always_inline]] inline Wide<sixteens> load(In in, Broad<Walk::bf16, sixteens> at) {
  Wide<sixteens> r;
  for (int k = 0; k < sixteens; k += 2) {
    const F even = load(in, Evens{at.at + k * lanes});
    const F odd = load(in, Odds{at.at + k * lanes});
    for (int i = 0; i < parts; ++i) {
      r.part[k * parts + i] = even.part[i];
      r.part[(k + 1) * parts + i] = odd.part[i];
    }
  }
  return r;
}
template <Walk walk, int sixteens>
[[gnu::always_inline]] inline Wide<sixteens> load(Coming x, Broad<walk, sixteens> at) {
  constexpr std::int64_t size = walk == Walk::bf16 ? 2 : 4, bytes = sixteens * lanes * size;
  static_assert(bytes % (pages_at_once * line_size) == 0);
  ask_ahead(static_cast<const char*>(x.in.from) + at.at * size, bytes);
  return load(x.in, at);
}
template <Walk walk, int sixteens>
[[gnu::always_inline]] inline Wide<sixteens> along(const float* from, Broad<walk, sixteens> at) {
  return read<Wide<sixteens>>(from + at.at);
}
/// The sixteen that stand k-th.
template <int n>
[[gnu::always_inline]] inline F one_of(const Many<n>& x, int k) {
  F r;
  for (int i = 0; i < parts; ++i) r.part[i] = x.part[k * parts + i];
  return r;
}
template <int sixteens>
[[gnu::always_inline]] inline void store(Out out, Broad<Walk::f32, sixteens> at, const Wide<sixteens>& x) {
  for (int k = 0; k < sixteens; k += 2) store_two(out, at.at + k * lanes, one_of(x, k), one_of(x, k + 1));
}

template <int sixteens>
[[gnu::always_inline]] inline void store(Out out, Broad<Walk::bf16, sixteens> at, const Wide<sixteens>& x) {
  for (int k = 0; k < sixteens; k += 2)
    store_halves(out, at.at + k * lanes, halves(Rough{one_of(x, k)}, Rough{one_of(x, k + 1)}));
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
                                          std::int64_t i) {
  Outs<count> outs = to;
  for (Out& out : outs.of) out = settled<walk>(out);
  if constexpr (walk == Walk::bf16)
    for (; i + pair <= n; i += pair) map_two(outs, Evens{i}, Odds{i}, value);
  else if constexpr (walk == Walk::f32)
    for (; i + pair <= n; i += pair) map_two(outs, Plain{i}, Plain{i + lanes}, value);
  const auto put = [&](auto at) {
    const auto x = value(at);
    for (int k = 0; k < count; ++k) store(outs.of[k], at, alone(walk, x.of[k]));
  };
  if constexpr (walk == Walk::mixed)
    for (; i + lanes <= n; i += lanes) put(Whole{i});
  // One piece of code for the few that are left, be it sixteen.
  for (; i < n; i += lanes) put(Tail{i, n - i < lanes ? n - i : lanes});
}
/// Results at one place.
template <class Numbers, int count>
struct Results {
  Numbers of[count];
};
template <class Numbers, class... More>
Results(Numbers, More...) -> Results<Numbers, 1 + sizeof...(More)>;

/// Rows become value(at), so many sixteens at once where that is worth it; such a value is rough where the
/// walk is bf16.
template <Walk walk, int sixteens, int count, class Value>
[[gnu::always_inline]] inline void map_at_once(const Outs<count>& to, std::int64_t n, const Value& value) {
  std::int64_t i = 0;
  if constexpr (sixteens > 1 && roomy && walk != Walk::mixed)
    for (; i + sixteens * lanes <= n; i += sixteens * lanes) {
      const Broad<walk, sixteens> at = {i};
      const Results<Wide<sixteens>, count> x = value(at);
      for (int k = 0; k < count; ++k) store(to.of[k], at, x.of[k]);
    }
  const auto one = [&](auto at) {
    const Results<F, count> x = value(at);
    Values<count, std::conditional_t<(sixteens > 1), Rough, F>> r;
    for (int k = 0; k < count; ++k) r.of[k] = {x.of[k]};
    return r;
  };
  map_as<walk>(to, n, one, i);
}

}  // namespace weft::fast::WEFT_ISA
