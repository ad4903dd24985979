// Layer norm and RMS norm of a row, with what stands before them, and their derivative.
#include "weft/backend/cpu/fast/drops.h"
#include "weft/backend/cpu/fast/math.h"

namespace weft::fast::WEFT_ISA {
namespace {

// ---- narrow rows: several at once, so that the chain from one's sum to its result overlaps the others'

[[gnu::always_inline]] inline In row_of(In first, std::int64_t i, std::int64_t step) {
  return {static_cast<const char*>(first.from) + i * step, first.type};
}
[[gnu::always_inline]] inline Out row_of(Out first, std::int64_t i, std::int64_t step) {
  return {static_cast<char*>(first.to) + i * step, first.type, first.past};
}

template <int rows>
[[gnu::always_inline]] inline Fours totals(const Sums (&sums)[rows]) {
  if constexpr (rows == 4)
    return sums_of(sums[0].joined(), sums[1].joined(), sums[2].joined(), sums[3].joined());
  else
    return Fours{sums[0].total()};
}
template <int rows>
[[gnu::always_inline]] inline Fours means(Walk walk, const In (&x)[rows], std::int64_t n) {
  Sums sums[rows];
  each_of_four(
      walk, n, [&](auto at, int i) __attribute__((always_inline)) {
        for (int r = 0; r < rows; ++r) sums[r].of[i] = sums[r].of[i] + load(x[r], at);
      });
  return totals(sums) / float(n);
}
// Of x - center: two passes over a row in cache lose nothing to cancellation.
template <int rows>
[[gnu::always_inline]] inline Fours mean_squares(Walk walk, const In (&x)[rows], Fours center,
                                                 std::int64_t n) {
  Sums sums[rows];
  each_of_four(
      walk, n, [&](auto at, int i) __attribute__((always_inline)) {
        for (int r = 0; r < rows; ++r) {
          const F off = only(at, load(x[r], at) - all(center[r]), 0.0F);
          sums[r].of[i] = fused(off, off, sums[r].of[i]);
        }
      });
  return totals(sums) / float(n);
}
[[gnu::always_inline]] inline Fours root(Fours x) {
  for (int i = 0; i < 4; ++i) x[i] = __builtin_sqrtf(x[i]);
  return x;
}

template <int rows>
[[gnu::flatten]] void forward_group(const NormRows& all_rows, std::int64_t first, const float* gain,
                                    const float* bias, const NormShape& shape) {
  const Walk walk = walk_of(all_rows.y.type, all_rows.x.type);
  const std::int64_t n = shape.n;
  Outs<rows> y;
  In x[rows];
  for (int r = 0; r < rows; ++r) {
    y.of[r] = row_of(all_rows.y, first + r, all_rows.y_step);
    x[r] = row_of(all_rows.x, first + r, all_rows.x_step);
  }
  const Fours mean = shape.kind == NormKind::layer ? means(walk, x, n) : Fours{};
  const Fours rstd = 1.0F / root(mean_squares(walk, x, mean, n) + shape.epsilon);
  map(
      y, walk, n, [&](auto at) __attribute__((always_inline)) {
        const F factor = along(gain, at);
        const F offset = bias ? along(bias, at) : all(0.0F);
        Values<rows> out;
        for (int r = 0; r < rows; ++r) {
          const F scaled = (load(x[r], at) - all(mean[r])) * all(rstd[r]);
          out.of[r] = bias ? fused(scaled, factor, offset) : scaled * factor;
        }
        return out;
      });
  for (int r = 0; r < rows; ++r) {
    if (all_rows.mean) all_rows.mean[first + r] = mean[r];
    all_rows.rstd[first + r] = rstd[r];
  }
}

// ---- wide rows: each is added up while the one before is written, so that the memory always has both to do

/// The sums of x - center and of its square, for a center near the mean.
struct Moments {
  float center;
  Sums first, second;
  template <NormKind kind, class At>
  [[gnu::always_inline]] void add(In x, At at, int i) {
    F off = load(x, at);
    if constexpr (kind == NormKind::layer) {
      off = only(at, off - all(center), 0.0F);
      first.of[i] = first.of[i] + off;
    }
    second.of[i] = fused(off, off, second.of[i]);
  }
};

/// The mean of the first elements.
[[gnu::always_inline]] inline float near_mean(Walk walk, In x) {
  constexpr std::int64_t few = 4 * lanes;
  static_assert(few <= narrow_row);
  const In only_x[] = {x};
  return means(walk, only_x, few)[0];
}

template <NormKind kind>
[[gnu::always_inline]] inline NormRow stats_of(Walk walk, In x, const Moments& sums, const NormShape& shape) {
  const auto rstd = [&](float square) { return 1.0F / __builtin_sqrtf(square + shape.epsilon); };
  const float square = sums.second.total() / float(shape.n);
  if constexpr (kind == NormKind::rms) return {0.0F, rstd(square)};
  // The variance is the difference of two terms, which must not cancel: where the center was far off (or
  // something is no number), once more about the mean.
  const float off = sums.first.total() / float(shape.n);
  const float variance = square - off * off;
  if (variance >= 0.5F * square) return {sums.center + off, rstd(variance)};
  const In only_x[] = {x};
  const float mean = means(walk, only_x, shape.n)[0];
  return {mean, rstd(mean_squares(walk, only_x, Fours{mean}, shape.n)[0])};
}

template <NormKind kind>
[[gnu::always_inline]] inline NormRow first_stats(Walk walk, In x, const NormShape& shape) {
  Moments sums = {kind == NormKind::layer ? near_mean(walk, x) : 0.0F, {}, {}};
  each_of_four(
      walk,
      shape.n, [&](auto at, int i) __attribute__((always_inline)) { sums.template add<kind>(x, at, i); });
  return stats_of<kind>(walk, x, sums, shape);
}

/// What becomes of a row.
template <NormKind kind>
struct Normalized {
  In x;
  NormRow stats;
  const float* gain;
  const float* bias;
  template <class At>
  [[gnu::always_inline]] F operator()(At at) const {
    F scaled = load(x, at);
    if constexpr (kind == NormKind::layer) scaled = scaled - all(stats.mean);
    scaled = scaled * all(stats.rstd);
    return bias ? fused(scaled, along(gain, at), along(bias, at)) : scaled * along(gain, at);
  }
};

template <class At>
[[gnu::always_inline]] inline void ask(In in, At at) {
  if (in.from) __builtin_prefetch(static_cast<const char*>(in.from) + at.at * size_of(in.type));
}
[[gnu::always_inline]] inline void ask(In, Odds) {}  // its line is that of the even ones

/// Writes a row, and gives the statistics of the next.
template <NormKind kind>
[[gnu::always_inline]] inline NormRow write_and_look(Out y, const Normalized<kind>& value, In next,
                                                     std::int64_t step, const NormShape& shape) {
  const Walk walk = walk_of(y.type, next.type);
  const Lookahead ahead(next, shape.n, step);
  Moments sums = {kind == NormKind::layer ? near_mean(walk, next) : 0.0F, {}, {}};
  const auto look = [&](auto at, int i) __attribute__((always_inline)) {
    ahead.ask(at);
    sums.template add<kind>(next, at, i);
  };
  const auto two = [&](auto a, auto b, int i) __attribute__((always_inline)) {
    look(a, i);
    look(b, i + 1);
    const F first = value(a);
    store_both(y, a, b, first, value(b));
  };
  const auto one = [&](auto at, int i) __attribute__((always_inline)) {
    look(at, i);
    store(y, at, value(at));
  };
  each_of_four(walk, shape.n, two, one);
  return stats_of<kind>(walk, next, sums, shape);
}

template <NormKind kind>
[[gnu::flatten]] void forward_wide(const NormRows& rows, const float* gain, const float* bias,
                                   const NormShape& shape) {
  const Walk walk = walk_of(rows.y.type, rows.x.type);
  NormRow stats = first_stats<kind>(walk, rows.x, shape);
  for (std::int64_t i = 0; i < rows.count; ++i) {
    if (rows.mean) rows.mean[i] = stats.mean;
    rows.rstd[i] = stats.rstd;
    const Normalized<kind> value = {row_of(rows.x, i, rows.x_step), stats, gain, bias};
    const Out y = row_of(rows.y, i, rows.y_step);
    if (i + 1 < rows.count)
      stats = write_and_look(y, value, row_of(rows.x, i + 1, rows.x_step), rows.x_step, shape);
    else
      map(
          y, walk, shape.n, [&](auto at) __attribute__((always_inline)) {
            ask(rows.later, at);
            return value(at);
          });
  }
}

void forward(const NormRows& rows, const float* gain, const float* bias, const NormShape& shape) {
  if (shape.n > narrow_row) {
    if (shape.kind == NormKind::layer) return forward_wide<NormKind::layer>(rows, gain, bias, shape);
    return forward_wide<NormKind::rms>(rows, gain, bias, shape);
  }
  std::int64_t i = 0;
  for (; i + 4 <= rows.count; i += 4) forward_group<4>(rows, i, gain, bias, shape);
  for (; i < rows.count; ++i) forward_group<1>(rows, i, gain, bias, shape);
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
  const Lookahead new_ones(of.dy, n);
  const Lookahead old_ones(of.x, n);
  each_of_four(walk, n, [&](auto at, int i) {
    new_ones.ask(at);
    old_ones.ask(at);
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
  const Lookahead ahead(residual.from ? residual : dy, shape.n);
  map(dx, walk, shape.n, [&](auto at) {
    ahead.ask(at);
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
