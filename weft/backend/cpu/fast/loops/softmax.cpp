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

/// Sum of exp(x - top). A power of x - top in f32 is off by what is next to nothing of the sum, in which
/// exp(top - top) = 1 stands. Short sums in f32, long ones in f64: the error does not grow with the
/// vocabulary.
[[gnu::flatten]] double sum(In x, float top, std::int64_t n) {
  constexpr std::int64_t piece = 1024;
  const Walk walk = walk_of(x.type);
  double sum = 0;
  for (std::int64_t first = 0; first < n; first += piece) {
    Sums e;
    const std::int64_t count = n - first < piece ? n - first : piece;
    each_of_four(walk, count, [&](auto at, int i) {
      auto here = at;
      here.at += first;
      ask_ahead(x, here, i);
      const F difference = load(x, here) - all(top);
      e.of[i] = e.of[i] + only(at, summed_power(difference * all(log2_of_e)), 0.0F);
    });
    sum += double(e.total());
  }
  return sum;
}

[[gnu::flatten]] void forward(Out y, In x, float* row, std::int64_t n) {
  each(n, [=](auto at) { store(row, at, load(x, at)); });
  const float from = greatest({row, Type::f32}, n);
  if (from == -infinity) return each(n, [=](auto at) { store(y, at, all(0.0F)); });
  Sums total;
  const F top = all(from);
  each_of_four(n, [&](auto at, int i) {
    const F e = exponential(load(row, at) - top);
    store(row, at, e);
    total.of[i] = total.of[i] + only(at, e, 0.0F);
  });
  const F share = all(1.0F / total.total());
  map(y, walk_of(y.type, Type::f32), n, [&](auto at) { return load(In{row, Type::f32}, at) * share; });
}

[[gnu::flatten]] void sink_terms(float* terms, const float* lse, const float* sinks, std::int64_t n) {
  each(n, [=](auto at) {
    const F share = exponential(along(sinks, at) - along(lse, at));
    store(terms, at, along(terms, at) * (all(0.0F) - share));
  });
}

}  // namespace

extern const SoftmaxLoops softmaxes;
const SoftmaxLoops softmaxes = {
    .forward = forward, .greatest = greatest, .sum = sum, .sink_terms = sink_terms};

}  // namespace weft::fast::WEFT_ISA
