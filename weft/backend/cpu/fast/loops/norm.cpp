// Layer norm and RMS norm of rows, with what stands before them.
#include "weft/backend/cpu/fast/loops/norm.h"

#include "weft/backend/cpu/fast/math.h"

namespace weft::fast::WEFT_ISA {
namespace {

// ---- narrow rows: several at once, so that the chain from one's sum to its result overlaps the others'

[[gnu::always_inline]] inline Fours root(Fours x) {
  for (int i = 0; i < 4; ++i) x[i] = __builtin_sqrtf(x[i]);
  return x;
}

template <int rows>
[[gnu::flatten]] void forward_group(const NormRows& all_rows, std::int64_t first, const float* gain,
                                    const float* bias, const NormShape& shape) {
  const Walk walk = walk_of(all_rows.y.first.type, all_rows.x.first.type);
  const std::int64_t n = shape.n;
  Outs<rows> y;
  In x[rows];
  for (int r = 0; r < rows; ++r) {
    y.of[r] = row_of(all_rows.y, first + r);
    x[r] = row_of(all_rows.x, first + r);
  }
  const Fours mean = shape.kind == NormKind::layer ? means(walk, x, n) : Fours{};
  const Fours rstd = 1.0F / root(mean_squares(walk, x, mean, n) + shape.epsilon);
  map(
      y, walk, n, [&](auto at) __attribute__((always_inline)) {
        const F factor = along(gain, at);
        const F offset = bias ? along(bias, at) : all(0.0F);
        Values<rows, Rough> out;
        for (int r = 0; r < rows; ++r) {
          const F scaled = (load(x[r], at) - all(mean[r])) * all(rstd[r]);
          out.of[r] = {bias ? fused(scaled, factor, offset) : scaled * factor};
        }
        return out;
      });
  for (int r = 0; r < rows; ++r) {
    if (all_rows.mean) all_rows.mean[first + r] = mean[r];
    all_rows.rstd[first + r] = rstd[r];
  }
}

// ---- wide rows: each is added up while the one before is written, so that the memory always has both to do

/// Writes a row, and gives the statistics of the next.
template <NormKind kind>
[[gnu::always_inline]] inline NormRow write_and_look(Out y, const Normalized<kind>& value, In next,
                                                     const NormShape& shape) {
  const Walk walk = walk_of(y.type, next.type);
  Moments sums = {kind == NormKind::layer ? near_mean(walk, next) : 0.0F, {}, {}};
  const auto look = [&](auto at, int i) __attribute__((always_inline)) {
    ask_ahead(next, at, i);
    sums.template add<kind>(at, load(next, at), i);
  };
  const auto two = [&](auto a, auto b, int i) __attribute__((always_inline)) {
    look(a, i);
    look(b, i + 1);
    const Rough first = value(a);
    store_both(y, a, b, first, value(b));
  };
  const auto one = [&](auto at, int i) __attribute__((always_inline)) {
    look(at, i);
    store(y, at, alone(walk, value(at)));
  };
  each_of_four(walk, shape.n, two, one);
  return stats_of<kind>(walk, next, sums, shape);
}

template <NormKind kind>
[[gnu::flatten]] void forward_wide(const NormRows& rows, const float* gain, const float* bias,
                                   const NormShape& shape) {
  const Walk walk = walk_of(rows.y.first.type, rows.x.first.type);
  NormRow stats = rows.known ? *rows.known : first_stats<kind>(walk, rows.x.first, shape);
  for (std::int64_t i = 0; i < rows.count; ++i) {
    if (rows.mean) rows.mean[i] = stats.mean;
    rows.rstd[i] = stats.rstd;
    const Normalized<kind> value = {row_of(rows.x, i), stats, gain, bias};
    const Out y = row_of(rows.y, i);
    if (i + 1 < rows.count)
      stats = write_and_look(y, value, row_of(rows.x, i + 1), shape);
    else
      map(
          y, walk, shape.n, [&](auto at) __attribute__((always_inline)) { return value(at); });
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

}  // namespace

extern const NormLoops norms;
const NormLoops norms = {
    .forward = forward, .sum = norm_sum, .sum_wide = norm_sum_wide, .backward = norm_backward};

}  // namespace weft::fast::WEFT_ISA
