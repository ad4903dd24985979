#include "weft/ops/elementwise.h"

#include "weft/ops/count.h"
#include "weft/ops/door.h"
#include "weft/ops/dropout_door.h"

namespace weft::ops {

Tensor zeros(Device& device, const Shape& shape, Dtype dtype, Use use) {
  Tensor out = empty(device, shape, dtype, use);
  fill(out, 0);
  return out;
}

void fill(const Tensor& out, double value) {
  Door("fill", out).given("out", out);
  count::pass(out, Work::elementwise, count::copy, out.bytes());
  out.device().kernels().fill(out, value);
}

void copy_into(const Tensor& out, const Tensor& in) {
  Door("copy", out).given("out", out).given("in", in).shaped("in", in, out.shape());
  count::pass(out, Work::elementwise, count::copy, count::traffic(out, in));
  out.device().kernels().copy(out, in);
}

Tensor cast(const Tensor& x, Dtype dtype, Use use) {
  Door("cast", x).given("x", x);
  if (x.dtype() == dtype) return x;
  Tensor out = empty(x.device(), x.shape(), dtype, use);
  copy_into(out, x);
  return out;
}

Tensor contiguous(const Tensor& x, Use use) {
  Door("contiguous", x).given("x", x);
  if (x.contiguous()) return x;
  Tensor out = empty_like(x, use);
  copy_into(out, x);
  return out;
}

void add_into(const Tensor& out, const Tensor& a, const Tensor& b) {
  Door("add", a).floats("a", a).floats("b", b, a.shape()).floats("out", out, a.shape());
  count::pass(out, Work::elementwise, count::add, count::traffic(out, a, b));
  out.device().kernels().add(out, a, b);
}

void add_scaled_into(const Tensor& out, const Tensor& x, float alpha) {
  Door("add_scaled", out).floats("out", out).floats("x", x, out.shape());
  count::pass(out, Work::elementwise, count::multiply_add, count::traffic(out, out, x));
  out.device().kernels().add_scaled(out, x, alpha);
}

void scale_in_place(const Tensor& x, float alpha) {
  Door("scale", x).floats("x", x);
  count::pass(x, Work::elementwise, count::add, count::traffic(x, x));
  x.device().kernels().scale(x, alpha);
}

Tensor multiply(const Tensor& a, const Tensor& b) {
  Door("multiply", a).floats("a", a);
  Tensor out = empty_like(a);
  multiply_into(out, a, b);
  return out;
}

void multiply_into(const Tensor& out, const Tensor& a, const Tensor& b) {
  Door("multiply", a).floats("a", a).floats("b", b, a.shape()).floats("out", out, a.shape());
  count::pass(out, Work::elementwise, count::add, count::traffic(out, a, b));
  out.device().kernels().multiply(out, a, b);
}

void add_bias_in_place(const Tensor& x, const Tensor& bias) {
  const Door door("add_bias", x);
  door.floats("x", x).ranked("x", x, 1, Dims::max_rank).floats("bias", bias, {x.dim(-1)});
  count::pass(x, Work::elementwise, count::add, count::traffic(x, x, bias));
  x.device().kernels().add_bias(x, bias);
}

void sum_rows_into(const Tensor& dbias, const Tensor& dy) {
  const Door door("sum_rows", dy);
  door.floats("dy", dy).ranked("dy", dy, 1, Dims::max_rank).holds("dbias", dbias, Dtype::f32, {dy.dim(-1)});
  count::pass(dy, Work::elementwise, count::add, count::traffic(dy, dbias, dbias));
  dy.device().kernels().sum_rows(dbias, dy);
}

Tensor dropout(const Tensor& x, const DropoutArgs& how) {
  Door("dropout", x).floats("x", x);
  Tensor y = empty_like(x);
  dropout_into(y, x, how);
  return y;
}

void dropout_into(const Tensor& y, const Tensor& x, const DropoutArgs& how) {
  const Door door("dropout", x);
  door.floats("x", x).floats("y", y, x.shape());
  check_dropout(door, x, how);
  count::pass(x, Work::elementwise, count::dropout, count::traffic(x, y));
  x.device().kernels().dropout(y, x, how);
}

void bias_dropout_add_into(const Tensor& out, const Tensor& x, const Tensor& bias, const Tensor& residual,
                           const DropoutArgs& how) {
  const Door door("bias_dropout_add", x);
  door.floats("x", x).floats("residual", residual, x.shape()).floats("out", out, x.shape());
  check_dropout(door, x, how);
  if (bias) door.floats("bias", bias, {x.dim(-1)});
  count::pass(x, Work::elementwise, count::dropout + 2, count::traffic(x, bias, residual, out));
  x.device().kernels().bias_dropout_add(out, x, bias, residual, how);
}

}  // namespace weft::ops
