// Softmax of a row and what the loss needs of one: the greatest, the sum of exponentials.
#include "weft/backend/cpu/fast/math.h"

namespace weft::fast::WEFT_ISA {
namespace {

constexpr float infinity = __builtin_inff();

float greatest(In x, std::int64_t n) {
  Sums most;
  for (F& one : most.of) one = all(-infinity);
  each_of_four(n, [&](auto at, int i) {
    const F here = only(at, load(x, at), -infinity);
    // NaN stays: the comparison with it is false.
    most.of[i] = choose(here < most.of[i], most.of[i], here);
  });
  F all_four = most.of[0];
  for (int i = 1; i < 4; ++i) all_four = choose(most.of[i] < all_four, all_four, most.of[i]);
  return weft::fast::WEFT_ISA::greatest(all_four);
}

void sums(In x, float from, std::int64_t n, double* exponentials, double* differences) {
  // Short sums in f32, long ones in f64: the error does not grow with the vocabulary.
  constexpr std::int64_t piece = 1024;
  const F top = all(from);
  double exponential_sum = 0;
  double difference_sum = 0;
  for (std::int64_t first = 0; first < n; first += piece) {
    Sums e;
    Sums d;
    const std::int64_t count = n - first < piece ? n - first : piece;
    each_of_four(count, [&](auto at, int i) {
      at.at += first;
      const F difference = load(x, at) - top;
      e.of[i] = e.of[i] + only(at, exponential(difference), 0.0F);
      d.of[i] = d.of[i] + only(at, difference, 0.0F);
    });
    exponential_sum += double(e.total());
    difference_sum += double(d.total());
  }
  *exponentials = exponential_sum;
  *differences = difference_sum;
}

void fill(Out y, std::int64_t from, std::int64_t to) {
  const Out rest = {static_cast<char*>(y.to) + from * (y.type == Type::f32 ? 4 : 2), y.type, false};
  each(to - from, [=](auto at) { store(rest, at, all(0.0F)); });
}

void forward(Out y, In x, const std::uint8_t* padding, std::int64_t seen, float* row, std::int64_t n) {
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
  each(seen, [&](auto at) { store(y, at, load(row, at) * share); });
  fill(y, seen, n);
}

void backward(Out dx, In dy, In y, std::int64_t n) {
  Sums dots;
  each_of_four(n, [&](auto at, int i) { dots.of[i] = dots.of[i] + load(y, at) * load(dy, at); });
  const F dot = all(dots.total());
  each(n, [=](auto at) { store(dx, at, load(y, at) * (load(dy, at) - dot)); });
}

}  // namespace

extern const SoftmaxLoops softmaxes;
const SoftmaxLoops softmaxes = {.forward = forward, .backward = backward, .greatest = greatest, .sums = sums};

}  // namespace weft::fast::WEFT_ISA
