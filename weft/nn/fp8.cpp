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
  Tensor met;
  if (!fp8.rules.delayed)
    scale_by(fp8, operand, x);
  else if (meets == Meets::yes)
    met = cell(fp8, operand, ScaleRow::met);
  return {ops::quantize(x, fp8.type(operand), turned, cell(fp8, operand, ScaleRow::scale), met),
          cell(fp8, operand, ScaleRow::inverse)};
}

}  // namespace

void fp8_product_into(const Fp8& fp8, const Tensor& y, const Tensor& x, const Tensor& w, const Tensor& bias) {
  const Fp8Rounded a = rounded(fp8, Fp8Operand::x, x, Turned::no, Meets::no);
  const Fp8Rounded b = rounded(fp8, Fp8Operand::weight, w, Turned::no, Meets::no);
  ops::scaled_matmul_into(y, a.of.codes, b.of.codes, {a.inverse, b.inverse, bias});
}

// A scale that follows from dy itself is another microbatch's when a debt is paid late.
Fp8Rounded fp8_grad(const Fp8& fp8, const Tensor& dy, Fp8Back wanted) {
  if (wanted == Fp8Back::weight) return rounded(fp8, Fp8Operand::dy, dy, Turned::yes, Meets::no);
  const bool both = wanted == Fp8Back::both;
  Fp8Rounded out = rounded(fp8, Fp8Operand::dy, dy, both ? Turned::both : Turned::no, Meets::yes);
  if (both && !fp8.rules.delayed) {
    const Tensor kept = empty_like(out.inverse);
    ops::copy_into(kept, out.inverse);
    out.inverse = kept;
  }
  return out;
}

void fp8_input_grad_into(const Fp8& fp8, const Tensor& dx, const Fp8Rounded& dy, const Tensor& w) {
  const Fp8Rounded b = rounded(fp8, Fp8Operand::weight, w, Turned::yes, Meets::yes);
  ops::scaled_matmul_into(dx, dy.of.codes, b.of.turned, {dy.inverse, b.inverse});
}

void fp8_weight_grad_into(const Fp8& fp8, const GradPlace& dw, const Fp8Rounded& dy, const Tensor& x) {
  const Fp8Rounded b = rounded(fp8, Fp8Operand::x, x, Turned::yes, Meets::yes);
  ops::scaled_matmul_into(dw.sum, dy.of.turned, b.of.turned,
                          {.a_inverse = dy.inverse, .b_inverse = b.inverse, .accumulate = dw.on_top});
}

void fp8_meet_input(const Fp8& fp8, const Tensor& x) {
  if (fp8.rules.delayed) ops::meet(cell(fp8, Fp8Operand::x, ScaleRow::met), x);
}

}  // namespace weft
