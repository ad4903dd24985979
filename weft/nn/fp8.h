// Products of linear layers in eight bits: what they multiply is rounded, each operand with one scale, or
// with one for each of its blocks.
//
// y = x W^T, dx = dy W and dW = dy^T x are three products of three tensors: x and W are rounded to one type,
// dy to one that may be another. A scale follows from the tensor at hand, or (delayed) from the greatest
// numbers that the steps before met; these are met in backward alone, so that nothing that is only evaluated
// moves a scale, and the greatest of a step does not show the order of its microbatches, nor who computed
// them.
//
// By blocks a tensor is rounded twice, for the product that sums along its rows and for the one that sums
// along its columns: a block lies along what is summed, but for a weight's squares, which serve both.
#pragma once

#include <cstdint>
#include <string>

#include "weft/tensor/args.h"

namespace weft {

enum class Fp8Scaling : std::uint8_t { delayed, tensorwise, blockwise, mxfp8 };

struct Fp8Rules {
  Dtype values = Dtype::f8e4m3, grads = Dtype::f8e5m2;
  Fp8Scaling scaling = Fp8Scaling::delayed;
  int margin = 0;
  bool of_window = false;
  std::int64_t remembers = 1;  // steps
  bool weight_grads = true;
  bool delayed() const { return scaling == Fp8Scaling::delayed; }
};

/// What a product multiplies, in the order of its scales.
enum class Fp8Operand : std::uint8_t { x, weight, dy };
inline constexpr std::int64_t fp8_operands = 3;

/// A product's rules and scales. Without memory for these its operands are multiplied as they are.
struct Fp8 {
  std::string name;  // of the scales; empty: never in eight bits
  Fp8Rules rules;
  Tensor scales;  // f32 [3, 2 + remembers] of ScaleRow, which are nobody's by blocks

  bool wanted() const { return !name.empty(); }
  bool on() const { return bool(scales); }
  Dtype type(Fp8Operand operand) const { return operand == Fp8Operand::dy ? rules.grads : rules.values; }
  F8Blocks blocks(Fp8Operand operand) const;
};

/// y [t, out] = x [t, in] W [out, in]^T (+ bias)
void fp8_product_into(const Fp8& fp8, const Tensor& y, const Tensor& x, const Tensor& w, const Tensor& bias);

/// A tensor's codes, and one over what it was multiplied by; by blocks the codes' own say that.
struct Fp8Rounded {
  Quantized of;
  Tensor inverse;
  F8Blocks blocks = F8Blocks::whole;
  /// Codes as they lie are no longer asked for.
  void keep_turned() { of.codes = of.inverses = {}; }
};
/// Products that go back from dy: dx reads its codes as they lie, dw turned.
enum class Fp8Back : std::uint8_t { input, weight, both };
/// dy [t, out], in one pass over it.
Fp8Rounded fp8_grad(const Fp8& fp8, const Tensor& dy, Fp8Back wanted);
/// dx [t, in] = dy W
void fp8_input_grad_into(const Fp8& fp8, const Tensor& dx, const Fp8Rounded& dy, const Tensor& w);
/// dw [out, in] (+)= dy^T x; unless rules.weight_grads says that dw is no product of eight bits
void fp8_weight_grad_into(const Fp8& fp8, const GradPlace& dw, const Fp8Rounded& dy, const Tensor& x);
/// Where dw is none: the scale of x follows from this.
void fp8_meet_input(const Fp8& fp8, const Tensor& x);

}  // namespace weft
