// Layer norm and RMS norm of a row, with what stands before them, and their derivative.
#include "weft/backend/cpu/fast/drops.h"
#include "weft/backend/cpu/fast/math.h"

namespace weft::fast::WEFT_ISA {
namespace {

[[gnu::flatten]] float mean_of(Walk walk, In x, std::int64_t n) {
  Sums sums;
  each_of_four(walk, n, [&](auto at, int i) { sums.of[i] = sums.of[i] + load(x, at); });
  return sums.total() / float(n);
}

// Of x - center: two passes over a row in cache lose nothing to cancellation.
[[gnu::flatten]] float mean_square(Walk walk, In x, float center, std::int64_t n) {
  Sums sums;
  const F middle = all(center);
  each_of_four(walk, n, [&](auto at, int i) {
    const F off = only(at, load(x, at) - middle, 0.0F);
    sums.of[i] = fused(off, off, sums.of[i]);
  });
  return sums.total() / float(n);
}

/// Asks for what comes after a row of n, a line of the memory at a time.
struct Next {
  Next(In in, std::int64_t n)
      : size(in.type == Type::f32 ? 4 : 2), row(static_cast<const char*>(in.from) + n * size) {}
  template <class At>
  [[gnu::always_inline]] void ask(At at) const {
    __builtin_prefetch(row + at.at * size, 0, 2);
  }
  [[gnu::always_inline]] void ask(Odds) const {}  // its line is that of the even ones
  std::int64_t size;
  const char* row;
};

[[gnu::flatten]] NormRow forward(Out y, In x, const float* gain, const float* bias, const NormShape& shape) {
  const std::int64_t n = shape.n;
  const Walk walk = walk_of(y.type, x.type);
  const float mean = shape.kind == NormKind::layer ? mean_of(walk, x, n) : 0.0F;
  const float rstd = 1.0F / __builtin_sqrtf(mean_square(walk, x, mean, n) + shape.epsilon);
  const F middle = all(mean);
  const F factor = all(rstd);
  // Writing alone leaves the memory idle half the time: the next row comes in meanwhile.
  const Next next(x, n);
  map(y, walk, n, [&](auto at) {
    next.ask(at);
    const F scaled = (load(x, at) - middle) * factor;
    return bias ? fused(scaled, along(gain, at), along(bias, at)) : scaled * along(gain, at);
  });
  return {mean, rstd};
}

[[gnu::flatten]] void sum(Out out, In x, const float* bias, In residual, const DropRow& drop, void* row,
                          std::int64_t n) {
  const Outs<2> both = {{out, {row, out.type, false}}};
  map_kept(both, {drop, x, residual}, n, [=](auto at, auto keep) {
    F in = load(x, at);
    if (bias) in = in + along(bias, at);
    const F total = load(residual, at) + keep(in);
    return Values<2>{{total, total}};
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
[[gnu::flatten]] Two sums_of(Walk walk, const Operands& of, float* dgain, float* dbias, std::int64_t n) {
  Sums g;
  Sums gx;
  each_of_four(walk, n, [&](auto at, int i) {
    const F dy = load(of.dy, at);
    const F xhat = normalized(of, at);
    const F weighted = dy * along(of.gain, at);  // 0 beyond a tail
    g.of[i] = g.of[i] + weighted;
    gx.of[i] = fused(weighted, xhat, gx.of[i]);
    if (dgain) keep_along(dgain, at, fused(dy, xhat, along(dgain, at)));
    if (dbias) keep_along(dbias, at, along(dbias, at) + dy);
  });
  return {g.total(), gx.total()};
}

[[gnu::flatten]] void backward(Out dx, In dy, In residual, In x, NormRow stats, const float* gain,
                               float* dgain, float* dbias, const NormShape& shape) {
  const Operands of = {dy, x, gain, stats};
  const Walk walk = walk_of(dx.type, dy.type, residual.from ? residual.type : dx.type, x.type);
  const Two totals = sums_of(walk, of, dgain, dbias, shape.n);
  const F mean_g = all(shape.kind == NormKind::layer ? totals.g / float(shape.n) : 0.0F);
  const F mean_gx = all(totals.gx / float(shape.n));
  const F rstd = all(stats.rstd);
  map(dx, walk, shape.n, [&](auto at) {
    const F g = load(of.dy, at) * along(of.gain, at);
    F d = rstd * (g - mean_g - normalized(of, at) * mean_gx);
    if (residual.from) d = d + load(residual, at);
    return d;
  });
}

}  // namespace

extern const NormLoops norms;
const NormLoops norms = {.forward = forward, .sum = sum, .backward = backward};

}  // namespace weft::fast::WEFT_ISA
