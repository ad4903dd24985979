// Layer norm and RMS norm of a row, with what stands before them, and their derivative.
#include "weft/backend/cpu/fast/drops.h"

namespace weft::fast::WEFT_ISA {
namespace {

/// x as f32: where it lies if it is, else in row.
const float* widened(In x, float* row, std::int64_t n) {
  if (x.type == Type::f32) return static_cast<const float*>(x.from);
  each(n, [=](auto at) { store(row, at, load(x, at)); });
  return row;
}

float mean_of(const float* x, std::int64_t n) {
  Sums sums;
  each_of_four(n, [&](auto at, int i) { sums.of[i] = sums.of[i] + load(x, at); });
  return sums.total() / float(n);
}

// Of x - center: two passes over a row in cache lose nothing to cancellation.
float mean_square(const float* x, float center, std::int64_t n) {
  Sums sums;
  const F middle = all(center);
  each_of_four(
      n, [&](auto at, int i) { sums.of[i] = sums.of[i] + only(at, square(load(x, at) - middle), 0.0F); });
  return sums.total() / float(n);
}

NormRow forward(Out y, In in, const float* gain, const float* bias, float* row, const NormShape& shape) {
  const std::int64_t n = shape.n;
  const float* x = widened(in, row, n);
  const float mean = shape.kind == NormKind::layer ? mean_of(x, n) : 0.0F;
  const float rstd = 1.0F / __builtin_sqrtf(mean_square(x, mean, n) + shape.epsilon);
  const F middle = all(mean);
  const F factor = all(rstd);
  // Writing alone leaves the memory idle half the time: the next row comes in meanwhile.
  const std::int64_t size = in.type == Type::f32 ? 4 : 2;
  const char* next = static_cast<const char*>(in.from) + n * size;
  if (bias)
    each(n, [=](auto at) {
      __builtin_prefetch(next + at.at * size, 0, 2);
      store(y, at, (load(x, at) - middle) * factor * load(gain, at) + load(bias, at));
    });
  else
    each(n, [=](auto at) {
      __builtin_prefetch(next + at.at * size, 0, 2);
      store(y, at, (load(x, at) - middle) * factor * load(gain, at));
    });
  return {mean, rstd};
}

void sum(Out out, In x, const float* bias, In residual, const DropRow& drop, float* row, std::int64_t n) {
  each_kept(drop, n, [=](auto at, auto keep) {
    F in = load(x, at);
    if (bias) in = in + load(bias, at);
    const F total = load(residual, at) + keep(in);
    store(out, at, total);
    store(row, at, as_stored(out.type, total));
  });
}

struct Operands {
  In dy, x;
  const float* gain;
  NormRow stats;
};
template <class At>
[[gnu::always_inline]] inline F normalized(const Operands& of, At at) {
  return (load(of.x, at) - all(of.stats.mean)) * all(of.stats.rstd);
}

struct Two {
  float g, gx;
};
/// The sums of g and of g xhat; dgain and dbias on the way.
Two sums_of(const Operands& of, float* dgain, float* dbias, std::int64_t n) {
  Sums g;
  Sums gx;
  each_of_four(n, [&](auto at, int i) {
    const F dy = load(of.dy, at);
    const F xhat = normalized(of, at);
    const F weighted = dy * load(of.gain, at);  // 0 beyond a tail
    g.of[i] = g.of[i] + weighted;
    gx.of[i] = gx.of[i] + weighted * xhat;
    if (dgain) store(dgain, at, load(dgain, at) + dy * xhat);
    if (dbias) store(dbias, at, load(dbias, at) + dy);
  });
  return {g.total(), gx.total()};
}

void backward(Out dx, In dy, In residual, In x, NormRow stats, const float* gain, float* dgain, float* dbias,
              const NormShape& shape) {
  const Operands of = {dy, x, gain, stats};
  const Two totals = sums_of(of, dgain, dbias, shape.n);
  const F mean_g = all(shape.kind == NormKind::layer ? totals.g / float(shape.n) : 0.0F);
  const F mean_gx = all(totals.gx / float(shape.n));
  const F rstd = all(stats.rstd);
  each(shape.n, [&](auto at) {
    const F g = load(of.dy, at) * load(of.gain, at);
    F d = rstd * (g - mean_g - normalized(of, at) * mean_gx);
    if (residual.from) d = d + load(residual, at);
    store(dx, at, d);
  });
}

}  // namespace

extern const NormLoops norms;
const NormLoops norms = {.forward = forward, .sum = sum, .backward = backward};

}  // namespace weft::fast::WEFT_ISA
