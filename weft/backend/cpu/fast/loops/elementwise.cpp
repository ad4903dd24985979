// Copies with conversion, sums and products, element by element.
#include "weft/backend/cpu/fast/coming.h"

namespace weft::fast::WEFT_ISA {
namespace {

[[gnu::flatten]] void fill(Out out, float value, std::int64_t n) {
  const F x = all(value);
  map(out, walk_of(out.type), n, [=](auto) { return x; });
}

/// f32 to bf16, whole lines of the caches at once, as far as there are any: where they end.
std::int64_t copy_lines(Out out, const std::uint32_t* from, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + pair <= n; i += pair) {
    ask_ahead(from + i);
    ask_ahead(from + i + lanes);
    store_both(out, Evens{i}, Odds{i}, as_floats(load_words(from, Evens{i})),
               as_floats(load_words(from, Odds{i})));
  }
  return i;
}

[[gnu::flatten]] void copy(Out out, In in, std::int64_t n) {
  if (out.type == Type::bf16 && in.type == Type::f32) {
    const std::int64_t done = copy_lines(out, static_cast<const std::uint32_t*>(in.from), n);
    out = after(out, done);
    in = after(in, done);
    n -= done;
  }
  const Coming x = {in};
  map(out, walk_of(out.type, in.type), n, [=](auto at) { return load(x, at); });
}

[[gnu::flatten]] void add(Out out, In a, In b, std::int64_t n) {
  const Coming x = {a};
  const Coming y = {b};
  map(out, walk_of(out.type, a.type, b.type), n, [=](auto at) { return load(x, at) + load(y, at); });
}

[[gnu::flatten]] void multiply(Out out, In a, In b, std::int64_t n) {
  const Coming x = {a};
  const Coming y = {b};
  map(out, walk_of(out.type, a.type, b.type), n, [=](auto at) { return load(x, at) * load(y, at); });
}

[[gnu::flatten]] void add_scaled(Out out, In x, float alpha, std::int64_t n) {
  const F factor = all(alpha);
  map(out, walk_of(out.type, x.type), n, [=](auto at) { return load(out, at) + factor * load(x, at); });
}

[[gnu::flatten]] void scale(Out y, In x, float alpha, std::int64_t n) {
  const F factor = all(alpha);
  map(y, walk_of(y.type, x.type), n, [=](auto at) { return factor * load(x, at); });
}

[[gnu::flatten]] float dot(In a, In b, std::int64_t n) {
  Sums sums;
  each_of_four(walk_of(a.type, b.type), n,
               [&](auto at, int i) { sums.of[i] = sums.of[i] + load(a, at) * load(b, at); });
  return sums.total();
}

constexpr float no_number = __builtin_nanf("");

void arrange(float* to, const float* from, std::int64_t n) {
  const auto same_nan = [](Floats x) { return x == x ? x : Floats{} + no_number; };
  std::int64_t i = 0;
  for (; i + pair <= n; i += pair)
    for (int k = 0; k < parts; ++k) {
      const Floats low = same_nan(read<Floats>(from + i + 2 * k * width));
      const Floats high = same_nan(read<Floats>(from + i + (2 * k + 1) * width));
      write(to + i + k * width, evens(low, high));
      write(to + i + lanes + k * width, odds(low, high));
    }
  for (; i < n; ++i) to[i] = from[i] == from[i] ? from[i] : no_number;
}

void restore(float* x, std::int64_t n) {
  for (std::int64_t i = 0; i + pair <= n; i += pair) {
    const F even = along(x, Evens{i});
    const F odd = along(x, Odds{i});
    for (int k = 0; k < parts; ++k) {
      Floats low;
      Floats high;
      interleave(even.part[k], odd.part[k], low, high);
      write(x + i + 2 * k * width, low);
      write(x + i + (2 * k + 1) * width, high);
    }
  }
}

void finish() { finish_streams(); }

}  // namespace

extern const ElementwiseLoops elementwise;
const ElementwiseLoops elementwise = {.fill = fill,
                                      .copy = copy,
                                      .add = add,
                                      .multiply = multiply,
                                      .add_scaled = add_scaled,
                                      .scale = scale,
                                      .dot = dot,
                                      .arrange = arrange,
                                      .restore = restore,
                                      .finish = finish};

}  // namespace weft::fast::WEFT_ISA
