// Scales lie on the device and are read there: the host waits for none of them.
#include "weft/nn/fp8.h"

#include "weft/ops/elementwise.h"
#include "weft/ops/scaled.h"

namespace weft {
namespace {

using ops::Turned;

/// Whether what a product multiplies is what the next scales follow from.
enum class Meets : std::uint8_t { no, yes };

Tensor cell(const Fp8& fp8, Fp8Operand operand, std::int64_t column) {
  return fp8.scales.at(0, std::int64_t(operand)).slice(0, column, 1);
}

/// The scale of x itself.
void scale_by(const Fp8& fp8, Fp8Operand operand, const Tensor& x) {
  const Tensor met = cell(fp8, operand, ScaleRow::met);
  ops::fill(met, 0);
  ops::meet(met, x);
  ops::renew_scales(fp8.scales.at(0, std::int64_t(operand)), {.dtype = fp8.type(operand)});
}

Fp8Rounded rounded(const Fp8& fp8, Fp8Operand operand, const Tensor& x, Turned turned, Meets meets) {
  const F8Blocks blocks = fp8.blocks(operand);
  if (blocks != F8Blocks::whole)
    return {ops::quantize_blocks(x, fp8.type(operand), turned, blocks), {}, blocks};
  Tensor met;
  if (!fp8.rules.delayed())
    scale_by(fp8, operand, x);
  else if (meets == Meets::yes)
    met = cell(fp8, operand, ScaleRow::met);
  return {ops::quantize(x, fp8.type(operand), turned, cell(fp8, operand, ScaleRow::scale), met),
          cell(fp8, operand, ScaleRow::inverse)};
}

/// One operand of a product, as it lies or turned.
struct Side {
  Tensor codes, inverse;
  F8Blocks blocks;
};

Side as_it_lies(const Fp8Rounded& r) {
  return {r.of.codes, r.of.inverses ? r.of.inverses : r.inverse, r.blocks};
}

Side turned(const Fp8Rounded& r) {
  return {r.of.turned, r.of.turned_inverses ? r.of.turned_inverses : r.inverse, r.blocks};
}

void multiply_into(const Tensor& out, const Side& a, const Side& b, ScaledArgs how) {
  how.a_inverse = a.inverse;
  how.b_inverse = b.inverse;
  how.a_blocks = a.blocks;
  how.b_blocks = b.blocks;
  ops::scaled_matmul_into(out, a.codes, b.codes, how);
}

}  // namespace

F8Blocks Fp8::blocks(Fp8Operand operand) const {
  if (rules.scaling == Fp8Scaling::mxfp8) return F8Blocks::lines_of_32;
  if (rules.scaling != Fp8Scaling::blockwise) return F8Blocks::whole;
  return operand == Fp8Operand::weight ? F8Blocks::squares_of_128 : F8Blocks::lines_of_128;
}

void fp8_product_into(const Fp8& fp8, const Tensor& y, const Tensor& x, const Tensor& w, const Tensor& bias) {
  const Fp8Rounded a = rounded(fp8, Fp8Operand::x, x, Turned::no, Meets::no);
  const Fp8Rounded b = rounded(fp8, Fp8Operand::weight, w, Turned::no, Meets::no);
  multiply_into(y, as_it_lies(a), as_it_lies(b), {.bias = bias});
}

// A scale that follows from dy itself is another microbatch's when a debt is paid late.
Fp8Rounded fp8_grad(const Fp8& fp8, const Tensor& dy, Fp8Back wanted) {
  if (wanted == Fp8Back::weight) return rounded(fp8, Fp8Operand::dy, dy, Turned::yes, Meets::no);
  const bool both = wanted == Fp8Back::both;
  Fp8Rounded out = rounded(fp8, Fp8Operand::dy, dy, both ? Turned::both : Turned::no, Meets::yes);
  if (both && fp8.rules.scaling == Fp8Scaling::tensorwise) {
    const Tensor kept = empty_like(out.inverse);
    ops::copy_into(kept, out.inverse);
    out.inverse = kept;
  }
  return out;
}

void fp8_input_grad_into(const Fp8& fp8, const Tensor& dx, const Fp8Rounded& dy, const Tensor& w) {
  const Fp8Rounded b = rounded(fp8, Fp8Operand::weight, w, Turned::yes, Meets::yes);
  multiply_into(dx, as_it_lies(dy), turned(b), {});
}

void fp8_weight_grad_into(const Fp8& fp8, const GradPlace& dw, const Fp8Rounded& dy, const Tensor& x) {
  const Fp8Rounded b = rounded(fp8, Fp8Operand::x, x, Turned::yes, Meets::yes);
  multiply_into(dw.sum, turned(dy), turned(b), {.accumulate = dw.on_top});
}

void fp8_meet_input(const Fp8& fp8, const Tensor& x) {
  if (fp8.rules.delayed()) ops::meet(cell(fp8, Fp8Operand::x, ScaleRow::met), x);
}

}  // namespace weft
