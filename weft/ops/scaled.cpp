#include "weft/ops/scaled.h"

#include "weft/base/number.h"
#include "weft/ops/count.h"
#include "weft/ops/door.h"
#include "weft/tensor/f8_blocks.h"

namespace weft::ops {
namespace {

bool is_f8(Dtype dtype) { return dtype == Dtype::f8e4m3 || dtype == Dtype::f8e5m2; }

void check_number(const Door& door, const char* what, const Tensor& number) {
  door.holds(what, number, Dtype::f32, {1});
}

Tensor inverses_of(const Tensor& codes, F8Blocks blocks) {
  if (!codes) return {};
  const F8Grid grid{blocks, codes.dim(0), codes.dim(1)};
  return empty(codes.device(), {grid.places()}, grid.dtype());
}

/// Codes of x as they lie, turned, or both, and memory for what scales become by blocks.
Quantized blank(const Tensor& x, Dtype dtype, Turned turned, F8Blocks blocks) {
  const std::int64_t unit = f8_unit_of(blocks), r = round_up(x.dim(0), unit), c = round_up(x.dim(1), unit);
  Quantized out;
  if (turned != Turned::yes) out.codes = empty(x.device(), {r, c}, dtype);
  if (turned != Turned::no) out.turned = empty(x.device(), {c, r}, dtype);
  if (blocks == F8Blocks::whole) return out;
  out.inverses = inverses_of(out.codes, blocks);
  out.turned_inverses = inverses_of(out.turned, blocks);
  return out;
}

void check_rounding(const Door& door, const Tensor& x, Dtype dtype) {
  door.ranked("x", x, 2, 2).floats("x", x);
  if (!is_f8(dtype)) door.refuse(Kind::shape, dtype, " is neither f8e4m3 nor f8e5m2");
}

struct Operand {
  const char *what, *inverse_name;
  Tensor codes, inverse;
  F8Blocks blocks;
};

void check_operand(const Door& door, const Operand& is) {
  const Tensor& codes = is.codes;
  door.ranked(is.what, codes, 2, 2).contiguous(is.what, codes);
  if (!is_f8(codes.dtype()))
    door.refuse(Kind::shape, is.what, " is ", codes.dtype(), ", neither f8e4m3 nor f8e5m2");
  const std::int64_t unit = f8_unit_of(is.blocks);
  for (const int d : {0, 1})
    if (codes.dim(d) % unit != 0)
      door.refuse(Kind::shape, is.what, " is ", codes.shape(), ", and its sizes are no multiples of ", unit);
  const F8Grid grid{is.blocks, codes.dim(0), codes.dim(1)};
  door.holds(is.inverse_name, is.inverse, grid.dtype(), {grid.places()});
}

void check_blocks(const Door& door, const ScaledArgs& how) {
  const auto is = [&](F8Blocks blocks) { return (how.a_blocks == blocks) + (how.b_blocks == blocks); };
  if (is(F8Blocks::squares_of_128) == 2)
    door.refuse(Kind::shape, "a and b both have a scale for each square, and no library multiplies these");
  if (is(F8Blocks::whole) == 1 || is(F8Blocks::lines_of_32) == 1)
    door.refuse(Kind::shape, "a and b do not have scales of blocks that go together");
}

}  // namespace

Quantized quantize(const Tensor& x, Dtype dtype, Turned turned, const Tensor& scale, const Tensor& met) {
  const Door door("quantize", x);
  check_rounding(door, x, dtype);
  check_number(door, "scale", scale);
  if (met) check_number(door, "met", met);
  const Quantized out = blank(x, dtype, turned, F8Blocks::whole);
  count::pass(x, Work::elementwise, count::multiply_add, count::traffic(x, out.codes, out.turned));
  x.device().kernels().quantize(out, x, scale, met);
  return out;
}

Quantized quantize_blocks(const Tensor& x, Dtype dtype, Turned turned, F8Blocks blocks) {
  const Door door("quantize_blocks", x);
  check_rounding(door, x, dtype);
  if (blocks == F8Blocks::whole) door.refuse(Kind::shape, "a whole matrix is no block: ask quantize()");
  const Quantized out = blank(x, dtype, turned, blocks);
  count::pass(x, Work::elementwise, count::multiply_add,
              count::traffic(x, out.codes, out.turned, out.inverses, out.turned_inverses));
  x.device().kernels().quantize_blocks(out, x, blocks);
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
  check_blocks(door, how);
  check_operand(door, {"a", "a_inverse", a, how.a_inverse, how.a_blocks});
  check_operand(door, {"b", "b_inverse", b, how.b_inverse, how.b_blocks});
  if (a.dtype() == Dtype::f8e5m2 && b.dtype() == Dtype::f8e5m2)
    door.refuse(Kind::shape, "a and b are both f8e5m2, and no processor multiplies these");
  door.floats("out", out).ranked("out", out, 2, 2).dense_rows("out", out);
  const std::int64_t unit = f8_unit_of(how.a_blocks);
  if (a.dim(1) != b.dim(1) || a.dim(0) != round_up(out.dim(0), unit) ||
      b.dim(0) != round_up(out.dim(1), unit))
    door.refuse(Kind::shape, a.shape(), " by ", text(b.shape(), "^T"), " does not give ", out.shape());
  if (a.dim(1) == 0) door.refuse(Kind::shape, "a is ", a.shape(), ": there is nothing to add up");
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
