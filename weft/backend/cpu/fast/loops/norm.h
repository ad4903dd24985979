// What the norms' loops share. For sources of loops/ only.
#pragma once

#include "weft/backend/cpu/fast/coming.h"
#include "weft/backend/cpu/fast/math.h"

namespace weft::fast::WEFT_ISA {

[[gnu::always_inline]] inline In row_of(const InRows& rows, std::int64_t i) {
  return {static_cast<const char*>(rows.first.from) + i * rows.step, rows.first.type};
}
[[gnu::always_inline]] inline Out row_of(const OutRows& rows, std::int64_t i) {
  return {static_cast<char*>(rows.first.to) + i * rows.step, rows.first.type, rows.first.past};
}

// ---- statistics

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
// Wide rows: both sums in one pass.

/// The sums of x - center and of its square, for a center near the mean.
struct Moments {
  float center;
  Sums first, second;
  template <NormKind kind, class At>
  [[gnu::always_inline]] void add(At at, F off, int i) {
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
      walk, shape.n, [&](auto at, int i) __attribute__((always_inline)) {
        sums.template add<kind>(at, load(x, at), i);
      });
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
  [[gnu::always_inline]] Rough operator()(At at) const {
    F scaled = load(x, at);
    if constexpr (kind == NormKind::layer) scaled = scaled - all(stats.mean);
    scaled = scaled * all(stats.rstd);
    return {bias ? fused(scaled, along(gain, at), along(bias, at)) : scaled * along(gain, at)};
  }
};

// ---- the loops that have a file of their own

void norm_sum(const SumRow& row, std::int64_t n);
NormRow norm_sum_wide(const SumRow& row, const NormDue* before, const NormShape& shape);
void norm_backward(const NormBackward& rows, const float* gain, float* dgain, float* dbias,
                   const NormShape& shape);

}  // namespace weft::fast::WEFT_ISA
