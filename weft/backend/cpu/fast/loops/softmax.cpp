// Softmax of a row and what the loss needs of one: the greatest, the sum of exponentials.
#include "weft/backend/cpu/fast/coming.h"
#include "weft/backend/cpu/fast/math.h"

namespace weft::fast::WEFT_ISA {
namespace {

constexpr float infinity = __builtin_inff();

[[gnu::flatten]] float greatest(In x, std::int64_t n) {
  Sums most;
  for (F& one : most.of) one = all(-infinity);
  each_of_four(walk_of(x.type), n, [&](auto at, int i) {
    ask_ahead(x, at, i);
    const F here = only(at, load(x, at), -infinity);
    // NaN stays: the comparison with it is false.
    most.of[i] = choose(here < most.of[i], most.of[i], here);
  });
  F all_four = most.of[0];
  for (int i = 1; i < 4; ++i) all_four = choose(most.of[i] < all_four, all_four, most.of[i]);
  return weft::fast::WEFT_ISA::greatest(all_four);
}

/// Sums of exp(x - top) and of x - top. A power of x - top in f32 is off by what is next to nothing of the
/// sum, in which exp(top - top) = 1 stands. Short sums in f32, long ones in f64: the error does not grow with
/// the vocabulary.
template <bool both>
[[gnu::flatten]] void add_up(In x, float top, std::int64_t n, double* sums) {
  constexpr std::int64_t piece = 1024;
  const Walk walk = walk_of(x.type);
  for (std::int64_t first = 0; first < n; first += piece) {
    Sums e;
    Sums d;
    const std::int64_t count = n - first < piece ? n - first : piece;
    each_of_four(walk, count, [&](auto at, int i) {
      auto here = at;
      here.at += first;
      ask_ahead(x, here, i);
      const F difference = load(x, here) - all(top);
      e.of[i] = e.of[i] + only(at, summed_power(difference * all(log2_of_e)), 0.0F);
      if constexpr (both) d.of[i] = d.of[i] + only(at, difference, 0.0F);
    });
    sums[0] += double(e.total());
    if constexpr (both) sums[1] += double(d.total());
  }
}

void sums(In x, float from, std::int64_t n, double* exponentials, double* differences) {
  double sums[2] = {};
  differences ? add_up<true>(x, from, n, sums) : add_up<false>(x, from, n, sums);
  *exponentials = sums[0];
  if (differences) *differences = sums[1];
}

void fill(Out y, std::int64_t from, std::int64_t to) {
  const Out rest = {static_cast<char*>(y.to) + from * size_of(y.type), y.type, false};
  each(to - from, [=](auto at) { store(rest, at, all(0.0F)); });
}

[[gnu::flatten]] void forward(Out y, In x, const std::uint8_t* padding, std::int64_t seen, float* row,
                              std::int64_t n) {
  each(seen, [=](auto at) { store(row, at, load(x, at)); });
  if (padding)
    for (std::int64_t i = 0; i < seen; ++i) row[i] = padding[i] ? row[i] : -infinity;
  const float from = greatest({row, Type::f32}, seen);
  if (from == -infinity) return fill(y, 0, n);
  Sums total;
  const F top = all(from);
  each_of_four(seen, [&](auto at, int i) {
    const F e = exponential(load(row, at) - top);
    store(row, at, e);
    total.of[i] = total.of[i] + only(at, e, 0.0F);
  });
  const F share = all(1.0F / total.total());
  map(y, walk_of(y.type, Type::f32), seen, [&](auto at) { return load(In{row, Type::f32}, at) * share; });
  fill(y, seen, n);
}

[[gnu::flatten]] void backward(Out dx, In dy, In y, std::int64_t n) {
  Sums dots;
  each_of_four(walk_of(dy.type, y.type), n,
               [&](auto at, int i) { dots.of[i] = dots.of[i] + load(y, at) * load(dy, at); });
  const F dot = all(dots.total());
  map(dx, walk_of(dx.type, dy.type, y.type), n, [=](auto at) { return load(y, at) * (load(dy, at) - dot); });
}

}  // namespace

extern const SoftmaxLoops softmaxes;
const SoftmaxLoops softmaxes = {.forward = forward, .backward = backward, .greatest = greatest, .sums = sums};

}  // namespace weft::fast::WEFT_ISA
