// Sums, exact ones too, and searches along a row.
#include "weft/backend/cpu/fast/lanes.h"

namespace weft::fast::WEFT_ISA {
namespace {

constexpr int halves = 2 * parts;
struct D {
  Doubles of[halves];
};

[[gnu::always_inline]] inline D widen(F x) {
  D r;
  for (int i = 0; i < parts; ++i) {
    r.of[2 * i] = lower_half(x.part[i]);
    r.of[2 * i + 1] = upper_half(x.part[i]);
  }
  return r;
}

// Sixteen running sums, halves added to halves at the end.
double sum(In x, std::int64_t n) {
  D total = {};
  each(n, [&](auto at) {
    const D here = widen(load(x, at));
    for (int i = 0; i < halves; ++i) total.of[i] += here.of[i];
  });
  double a[lanes];
  for (int i = 0; i < halves; ++i) __builtin_memcpy(a + i * width / 2, &total.of[i], sizeof total.of[i]);
  for (int half = lanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) a[i] += a[i + half];
  return a[0];
}

constexpr std::uint32_t infinite = 0x7f800000U;

std::uint32_t greatest_bits(In x, std::int64_t n) {
  U most = all(0U);
  each(n, [&](auto at) {
    const U here = as_words(absolute(load(x, at)));
    most = choose(most < here, here, most);
  });
  std::uint32_t a[lanes];
  store(a, most);
  std::uint32_t r = 0;
  for (const std::uint32_t one : a) r = one > r ? one : r;
  return r;
}

float greatest_size(In x, std::int64_t n) {
  const std::uint32_t bits = greatest_bits(x, n);
  float r;
  __builtin_memcpy(&r, &bits, sizeof r);
  return r;
}

/// 2^k for -1022 <= k <= 1023.
double power(int k) {
  const std::uint64_t bits = std::uint64_t(k + 1023) << 52;
  double r;
  __builtin_memcpy(&r, &bits, sizeof r);
  return r;
}

// What is added exactly at one level: the multiples of 2^grid next to each number. Its sum over a lane of a
// piece, 2^8 numbers below 2^(grid + 45), fits 53 bits; what is left of a number is at most half a step.
constexpr int bits_a_level = 45;

/// Splits numbers over `levels` grids, the first at `grid`; true where nothing is left.
template <int levels>
bool split(const float* x, Term term, std::int64_t n, int grid, ExactPiece& piece) {
  D total[levels] = {};
  D left = {};
  Doubles anchor[levels];
  for (int k = 0; k < levels; ++k) anchor[k] = Doubles{} + 1.5 * power(grid - k * (bits_a_level + 1) + 52);
  each(n, [&](auto at) {
    D q = widen(load(x, at));
    for (int i = 0; i < halves; ++i) {
      Doubles rest = term == Term::square ? q.of[i] * q.of[i] : q.of[i];
      for (int k = 0; k < levels; ++k) {
        const Doubles near = (rest + anchor[k]) - anchor[k];
        total[k].of[i] += near;
        rest -= near;
      }
      left.of[i] = (Doubles)((Longs)left.of[i] | (Longs)rest);
    }
  });
  bool whole = true;
  for (const Doubles& half : left.of)
    for (int j = 0; j < width / 2; ++j) whole = whole && half[j] == 0;
  for (int k = 0; k < 4; ++k) {
    piece.integer[k] = 0;
    piece.exponent[k] = grid - k * (bits_a_level + 1);
    if (k >= levels) continue;
    const double scale = power(-piece.exponent[k]);
    for (const Doubles& half : total[k].of)
      for (int j = 0; j < width / 2; ++j) piece.integer[k] += std::int64_t(half[j] * scale);
  }
  return whole;
}

bool exact(In in, Term term, std::int64_t n, float* row, ExactPiece& piece) {
  const float* x = static_cast<const float*>(in.from);
  if (in.type != Type::f32) {
    each(n, [=](auto at) { store(row, at, load(in, at)); });
    x = row;
  }
  const std::uint32_t most = greatest_bits({x, Type::f32}, n);
  if (most >= infinite) return false;
  // All numbers are below 2^above (denormals: below 2^-126).
  const int above = (most >> 23 ? int(most >> 23) : 1) - 126;
  const int grid = (term == Term::square ? 2 * above : above) - bits_a_level;
  return split<2>(x, term, n, grid, piece) || split<4>(x, term, n, grid, piece);
}

std::int64_t first_nonfinite(In x, std::int64_t n) {
  std::int64_t found = -1;
  std::int64_t i = 0;
  // Stretches without a branch, then the one that holds it.
  constexpr std::int64_t stretch = 512;
  for (; i < n && found < 0; i += stretch) {
    const std::int64_t count = n - i < stretch ? n - i : stretch;
    I bad = all(0);
    each(count, [&](auto at) {
      at.at += i;
      bad = bad | (all(infinite - 1) < as_words(absolute(load(x, at))));
    });
    if (!any(bad)) continue;
    for (std::int64_t j = i; j < i + count && found < 0; ++j) {
      const F one = load(x, Tail{j, 1});
      if (any(all(infinite - 1) < as_words(absolute(one)))) found = j;
    }
  }
  return found;
}

std::int64_t zeros(In x, std::int64_t n) {
  I count = all(0);
  each(n, [&](auto at) { count = count - (only(at, load(x, at), 1.0F) == all(0.0F)); });
  std::int64_t r = 0;
  for (const Ints& part : count.part)
    for (int i = 0; i < width; ++i) r += part[i];
  return r;
}

}  // namespace

extern const SumLoops sums;
const SumLoops sums = {.sum = sum,
                       .exact = exact,
                       .greatest_size = greatest_size,
                       .first_nonfinite = first_nonfinite,
                       .zeros = zeros};

}  // namespace weft::fast::WEFT_ISA
