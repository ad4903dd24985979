#include "weft/ops/reduce.h"

#include "weft/ops/count.h"
#include "weft/ops/door.h"
#include "weft/ops/elementwise.h"
#include "weft/tensor/exact_sum.h"

namespace weft::ops {
namespace {

Tensor result(const Tensor& x, Dtype dtype) {
  Tensor out = empty(x.device(), {1}, dtype);
  count::pass(x, Work::other, count::add, count::traffic(x, out));
  return out;
}

void check_digits(const Door& door, const Tensor& digits) {
  door.holds("digits", digits, Dtype::f64, {exact_digits}).contiguous("digits", digits);
}

}  // namespace

Tensor sum(const Tensor& x) {
  Door("sum", x).given("x", x);
  Tensor out = result(x, Dtype::f64);
  x.device().kernels().sum(out, x);
  return out;
}

Tensor max_abs(const Tensor& x) {
  Door("max_abs", x).floats("x", x);
  Tensor out = result(x, Dtype::f64);
  x.device().kernels().max_abs(out, x);
  return out;
}

Tensor find_nonfinite(const Tensor& x) {
  Door("find_nonfinite", x).floats("x", x);
  Tensor out = result(x, Dtype::i64);
  x.device().kernels().find_nonfinite(out, x);
  return out;
}

Tensor count_zeros(const Tensor& x) {
  Door("count_zeros", x).floats("x", x);
  Tensor out = result(x, Dtype::i64);
  x.device().kernels().count_zeros(out, x);
  return out;
}

void sum_exact_into(const Tensor& digits, const Tensor& x) {
  const Door door("sum_exact", x);
  check_digits(door, digits);
  door.floats("x", x);
  count::pass(x, Work::other, count::add, count::traffic(x));
  x.device().kernels().sum_exact(digits, x);
}

void sum_squares_into(const Tensor& digits, const Tensor& x) {
  const Door door("sum_squares", x);
  check_digits(door, digits);
  door.floats("x", x);
  count::pass(x, Work::other, count::multiply_add, count::traffic(x));
  x.device().kernels().sum_squares(digits, x);
}

void norm_ratios_into(const Tensor& ratios, const Tensor& digits, const NormRatioArgs& how) {
  const Door door("norm_ratios", ratios);
  door.typed("ratios", ratios, Dtype::f32).ranked("ratios", ratios, 1, 1).contiguous("ratios", ratios);
  door.typed("digits", digits, Dtype::f64).ranked("digits", digits, 3, 3).contiguous("digits", digits);
  door.shaped("digits", digits, {ratios.dim(0), digits.dim(1) == 1 ? 1 : 2, exact_digits});
  if (!(how.least <= how.most))
    door.refuse(Kind::usage, "least ", how.least, " is not at most ", how.most, ", the most");
  count::pass(digits, Work::other, count::multiply_add, count::traffic(ratios, digits));
  ratios.device().kernels().norm_ratios(ratios, digits, how);
}

}  // namespace weft::ops
