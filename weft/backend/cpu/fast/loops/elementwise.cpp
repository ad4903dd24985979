// Copies with conversion, sums and products, element by element.
#include "weft/backend/cpu/fast/lanes.h"

namespace weft::fast::WEFT_ISA {
namespace {

void fill(Out out, float value, std::int64_t n) {
  const F x = all(value);
  each(n, [=](auto at) { store(out, at, x); });
}

void copy(Out out, In in, std::int64_t n) {
  each(n, [=](auto at) { store(out, at, load(in, at)); });
}

void add(Out out, In a, In b, std::int64_t n) {
  each(n, [=](auto at) { store(out, at, load(a, at) + load(b, at)); });
}

void multiply(Out out, In a, In b, std::int64_t n) {
  each(n, [=](auto at) { store(out, at, load(a, at) * load(b, at)); });
}

void add_scaled(Out out, In x, float alpha, std::int64_t n) {
  const F factor = all(alpha);
  each(n, [=](auto at) { store(out, at, load(out, at) + factor * load(x, at)); });
}

void scale(Out y, In x, float alpha, std::int64_t n) {
  const F factor = all(alpha);
  each(n, [=](auto at) { store(y, at, factor * load(x, at)); });
}

float dot(In a, In b, std::int64_t n) {
  Sums sums;
  each_of_four(n, [&](auto at, int i) { sums.of[i] = sums.of[i] + load(a, at) * load(b, at); });
  return sums.total();
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
                                      .finish = finish};

}  // namespace weft::fast::WEFT_ISA
