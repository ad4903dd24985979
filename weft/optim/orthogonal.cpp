// Newton-Schulz: odd polynomials of a matrix, which change its singular values and nothing else.
#include "weft/optim/orthogonal.h"

#include "weft/ops/elementwise.h"
#include "weft/ops/matmul.h"
#include "weft/ops/norm.h"
#include "weft/ops/reduce.h"
#include "weft/tensor/exact_sum.h"

namespace weft {
namespace {

constexpr std::array<QuinticStep, 5> quintic{{{4.0848, -6.8946, 2.9270},
                                              {3.9505, -6.3029, 2.6377},
                                              {3.7418, -5.5913, 2.3037},
                                              {2.8769, -3.1427, 1.2046},
                                              {2.8366, -3.0525, 1.2012}}};
constexpr std::array<QuinticStep, 1> simple{{{3.4445, -4.7750, 2.0315}}};

Tensor room(const Tensor& like, const Shape& shape, Dtype dtype) {
  return empty(like.device(), shape, dtype, Use::workspace);
}

/// What operands are rounded to, beside their sums in f32; one tensor where that is nothing.
Tensor rounded(const Tensor& sums, const Tensor& into) {
  if (sums.dtype() == into.dtype()) return sums;
  ops::copy_into(into, sums);
  return into;
}

/// x, of which ranks may hold parts, over its Euclidean norm, or over 1e-7 where that is less.
void bring_to_length_one(const Tensor& x, const MatrixCut& cut) {
  const Tensor digits = ops::zeros(x.device(), {1, 1, exact_digits}, Dtype::f64, Use::workspace);
  const Tensor sum = digits.view({exact_digits}), factor = room(x, {1}, Dtype::f32);
  ops::sum_squares_into(sum, x);
  if (cut.circle) cut.circle->all_reduce(sum, Reduce::sum).wait();
  ops::norm_ratios_into(factor, digits, {.most = 1e7});
  const Tensor row = x.view({1, x.elements()});
  ops::scale_rows_into(row, row, factor);
}

}  // namespace

std::span<const QuinticStep> quintic_steps() { return quintic; }
std::span<const QuinticStep> simple_steps() { return simple; }

// With G = z z^T (z^T z where z is tall): z = a z + (b G + c G G) z.
void orthogonalize(const Tensor& x, const NewtonSchulz& how, float scale, const MatrixCut& cut) {
  const std::int64_t rows = x.dim(0), columns = x.dim(1);
  const bool tall = cut.circle ? cut.dim == 0 : rows > columns;
  const Shape square{tall ? columns : rows, tall ? columns : rows};
  const Tensor next = room(x, x.shape(), Dtype::f32), z = room(x, x.shape(), how.dtype);
  const Tensor gram = room(x, square, Dtype::f32), product = room(x, square, Dtype::f32);
  const Tensor gram_rounded = how.dtype == Dtype::f32 ? gram : room(x, square, how.dtype);
  ops::copy_into(next, x);
  bring_to_length_one(next, cut);
  ops::copy_into(z, next);
  for (int step = 0; step < how.steps; ++step) {
    const auto& [a, b, c] = how.rounds[std::size_t(step) % how.rounds.size()];
    ops::matmul_into(gram, z, z,
                     tall ? MatmulArgs{.a = Read::transposed} : MatmulArgs{.b = Read::transposed});
    if (cut.circle) cut.circle->all_reduce(gram, Reduce::sum).wait();
    const Tensor g = rounded(gram, gram_rounded);
    ops::matmul_into(product, g, g);
    if (g.dtype() != gram.dtype()) ops::copy_into(gram, g);
    ops::scale_in_place(gram, float(b));
    ops::add_scaled_into(gram, product, float(c));
    const Tensor p = rounded(gram, gram_rounded);
    ops::matmul_into(next, tall ? z : p, tall ? p : z);
    ops::add_scaled_into(next, z, float(a));
    ops::copy_into(z, next);
  }
  ops::copy_into(x, z);
  ops::scale_in_place(x, scale);
}

}  // namespace weft
