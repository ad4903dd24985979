#include "weft/ops/scaled.h"

#include "weft/base/number.h"
#include "weft/ops/count.h"
#include "weft/ops/door.h"

namespace weft::ops {
namespace {

bool is_f8(Dtype dtype) { return dtype == Dtype::f8e4m3 || dtype == Dtype::f8e5m2; }

std::int64_t in_units(std::int64_t size) { return round_up(size, f8_unit); }

void check_number(const Door& door, const char* what, const Tensor& number) {
  door.holds(what, number, Dtype::f32, {1});
}

void check_codes(const Door& door, const char* what, const Tensor& codes) {
  door.ranked(what, codes, 2, 2).contiguous(what, codes);
  if (!is_f8(codes.dtype()))
    door.refuse(Kind::shape, what, " is ", codes.dtype(), ", neither f8e4m3 nor f8e5m2");
  for (const int d : {0, 1})
    if (codes.dim(d) % f8_unit != 0)
      door.refuse(Kind::shape, what, " is ", codes.shape(), ", and its sizes are no multiples of ", f8_unit);
}

}  // namespace

Quantized quantize(const Tensor& x, Dtype dtype, Turned turned, const Tensor& scale, const Tensor& met) {
  const Door door("quantize", x);
  door.ranked("x", x, 2, 2).floats("x", x);
  if (!is_f8(dtype)) door.refuse(Kind::shape, dtype, " is neither f8e4m3 nor f8e5m2");
  check_number(door, "scale", scale);
  if (met) check_number(door, "met", met);
  const std::int64_t r = in_units(x.dim(0)), c = in_units(x.dim(1));
  Quantized out;
  if (turned != Turned::yes) out.codes = empty(x.device(), {r, c}, dtype);
  if (turned != Turned::no) out.turned = empty(x.device(), {c, r}, dtype);
  count::pass(x, Work::elementwise, count::multiply_add, count::traffic(x, out.codes, out.turned));
  x.device().kernels().quantize(out, x, scale, met);
  return out;
}

void meet(const Tensor& met, const Tensor& x) {
  const Door door("meet", x);
  door.ranked("x", x, 2, 2).floats("x", x);
  check_number(door, "met", met);
  count::pass(x, Work::elementwise, count::add, count::traffic(x));
  x.device().kernels().quantize({}, x, {}, met);
}

void scaled_matmul_into(const Tensor& out, const Tensor& a, const Tensor& b, const ScaledArgs& how) {
  const Door door("scaled_matmul", a);
  check_codes(door, "a", a);
  check_codes(door, "b", b);
  if (a.dtype() == Dtype::f8e5m2 && b.dtype() == Dtype::f8e5m2)
    door.refuse(Kind::shape, "a and b are both f8e5m2, and no processor multiplies these");
  door.floats("out", out).ranked("out", out, 2, 2).dense_rows("out", out);
  if (a.dim(1) != b.dim(1) || a.dim(0) != in_units(out.dim(0)) || b.dim(0) != in_units(out.dim(1)))
    door.refuse(Kind::shape, a.shape(), " by ", text(b.shape(), "^T"), " does not give ", out.shape());
  if (a.dim(1) == 0) door.refuse(Kind::shape, "a is ", a.shape(), ": there is nothing to add up");
  check_number(door, "a_inverse", how.a_inverse);
  check_number(door, "b_inverse", how.b_inverse);
  if (how.bias) door.floats("bias", how.bias, {out.dim(1)});
  count::product(out, a.dim(1), count::traffic(a, b, how.bias, out) + (how.accumulate ? out.bytes() : 0));
  if (out.elements() > 0) a.device().kernels().scaled_matmul(out, a, b, how);
}

void renew_scales(const Tensor& rows, const ScaleArgs& how) {
  const Door door("renew_scales", rows);
  door.ranked("rows", rows, 1, 3).typed("rows", rows, Dtype::f32).dense_rows("rows", rows);
  if (rows.dim(-1) <= ScaleRow::met)
    door.refuse(Kind::shape, "rows are ", rows.shape(), ", and remember nothing that was met");
  if (!is_f8(how.dtype)) door.refuse(Kind::shape, how.dtype, " is neither f8e4m3 nor f8e5m2");
  count::pass(rows, Work::elementwise, count::copy, count::traffic(rows, rows));
  if (rows.elements() > 0) rows.device().kernels().renew_scales(rows, how);
}

}  // namespace weft::ops
