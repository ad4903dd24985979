// Whole tensors to one number.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "weft/backend/cpu/fast/kernels.h"
#include "weft/backend/cpu/fast/lines.h"
#include "weft/backend/cpu/fast/parallel.h"
#include "weft/tensor/exact_sum.h"

namespace weft {

using fast::in_parallel;
using fast::ready;
using fast::Together;

namespace {

using Digits = std::array<double, exact_digits>;

/// A number for each thread or piece, all alike at first.
template <class T>
std::span<T> cleared(T* room, std::int64_t count, const T& value) {
  std::fill_n(room, count, value);
  return {room, std::size_t(count)};
}

/// Number by number: for what four integers cannot hold.
void add_one_by_one(Digits& digits, const float* x, std::int64_t n, fast::Term term) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double q = term == fast::Term::square ? double(x[i]) * double(x[i]) : double(x[i]);
    if (!std::isfinite(q)) {
      digits.back() += q;
    } else if (q != 0) {
      int exponent = 0;
      const double fraction = std::frexp(q, &exponent);
      add_exact(digits, std::int64_t(std::ldexp(fraction, 53)), exponent - 53);
    }
  }
}

/// Adds a line's numbers or squares.
void add_line(Digits& digits, const fast::Loops& loops, fast::In x, std::int64_t n, fast::Term term) {
  std::array<float, fast::exact_piece> row;
  const std::int64_t size = size_of(x.type);
  for (std::int64_t from = 0; from < n; from += fast::exact_piece) {
    const std::int64_t count = std::min(fast::exact_piece, n - from);
    const fast::In here = {static_cast<const std::byte*>(x.from) + from * size, x.type};
    fast::ExactPiece piece;
    if (loops.sums.exact(here, term, count, row.data(), piece)) {
      for (int k = 0; k < 4; ++k)
        if (piece.integer[k] != 0) add_exact(digits, piece.integer[k], piece.exponent[k]);
    } else {
      loops.elementwise.copy({row.data(), fast::Type::f32, false}, here, count);
      add_one_by_one(digits, row.data(), count, term);
    }
  }
  carry(digits);
}

}  // namespace

void FastKernels::add_exactly(const Tensor& digits, const Tensor& x, fast::Term term) {
  const Together walk({&x});
  const std::span<double, exact_digits> total(digits.as<double>());
  const std::span<Digits> sums = cleared(few_.take<Digits>(threads_), threads_, Digits{});
  in_parallel(threads_, walk.pieces(), walk.elements(), [&](std::int64_t first, std::int64_t last) {
    Digits mine = {};
    for (std::int64_t i = first; i < last; ++i) add_line(mine, loops_, walk.in(0, i), walk.count(i), term);
    sums[std::size_t(fast::me())] = mine;
  });
  // Integers: the order does not matter.
  for (const Digits& one : sums)
    for (std::size_t i = 0; i < exact_digits; ++i) total[i] += one[i];
  carry(total);
}

void FastKernels::sum_exact(const Tensor& digits, const Tensor& x) {
  if (!ready({&x})) return ReferenceKernels::sum_exact(digits, x);
  add_exactly(digits, x, fast::Term::number);
}

void FastKernels::sum_squares(const Tensor& digits, const Tensor& x) {
  if (!ready({&x})) return ReferenceKernels::sum_squares(digits, x);
  add_exactly(digits, x, fast::Term::square);
}

void FastKernels::sum(const Tensor& out, const Tensor& x) {
  if (!ready({&x})) return ReferenceKernels::sum(out, x);
  const Together walk({&x});
  const std::span<double> sums = cleared(few_.take<double>(walk.pieces()), walk.pieces(), 0.0);
  in_parallel(threads_, walk.pieces(), walk.elements(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      sums[std::size_t(i)] = loops_.sums.sum(walk.in(0, i), walk.count(i));
  });
  double total = 0;
  for (const double one : sums) total += one;
  out.as<double>()[0] = total;
}

void FastKernels::max_abs(const Tensor& out, const Tensor& x) {
  if (!ready({&x})) return ReferenceKernels::max_abs(out, x);
  const Together walk({&x});
  const std::span<float> most = cleared(few_.take<float>(threads_), threads_, 0.0F);
  const auto greater = [](float a, float b) { return std::isnan(a) || a > b ? a : b; };
  in_parallel(threads_, walk.pieces(), walk.elements(), [&](std::int64_t first, std::int64_t last) {
    float mine = 0;
    for (std::int64_t i = first; i < last; ++i)
      mine = greater(mine, loops_.sums.greatest_size(walk.in(0, i), walk.count(i)));
    most[std::size_t(fast::me())] = mine;
  });
  float all = 0;
  for (const float one : most) all = greater(all, one);
  out.as<double>()[0] = double(all);
}

void FastKernels::find_nonfinite(const Tensor& out, const Tensor& x) {
  if (!ready({&x})) return ReferenceKernels::find_nonfinite(out, x);
  const Together walk({&x});
  constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
  const std::span<std::int64_t> found = cleared(few_.take<std::int64_t>(threads_), threads_, none);
  in_parallel(threads_, walk.pieces(), walk.elements(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t at = loops_.sums.first_nonfinite(walk.in(0, i), walk.count(i));
      if (at < 0) continue;
      found[std::size_t(fast::me())] = walk.before(i) + at;
      return;
    }
  });
  std::int64_t least = none;
  for (const std::int64_t one : found) least = std::min(least, one);
  out.as<std::int64_t>()[0] = least == none ? -1 : least;
}

void FastKernels::count_zeros(const Tensor& out, const Tensor& x) {
  if (!ready({&x})) return ReferenceKernels::count_zeros(out, x);
  const Together walk({&x});
  const std::span<std::int64_t> zeros = cleared(few_.take<std::int64_t>(threads_), threads_, std::int64_t{0});
  in_parallel(threads_, walk.pieces(), walk.elements(), [&](std::int64_t first, std::int64_t last) {
    std::int64_t mine = 0;
    for (std::int64_t i = first; i < last; ++i) mine += loops_.sums.zeros(walk.in(0, i), walk.count(i));
    zeros[std::size_t(fast::me())] = mine;
  });
  std::int64_t all = 0;
  for (const std::int64_t one : zeros) all += one;
  out.as<std::int64_t>()[0] = all;
}

}  // namespace weft
