#include "weft/ops/activation.h"

#include "weft/ops/count.h"
#include "weft/ops/door.h"

namespace weft::ops {
namespace {

void check_input(const Door& door, const Tensor& x, const Tensor& bias) {
  door.floats("x", x).ranked("x", x, 1, Dims::max_rank);
  if (bias) door.floats("bias", bias, {x.dim(-1)});
}

/// The shape of what a gate lets through.
Shape halved(const Door& door, const Tensor& x) {
  if (x.dim(-1) % 2 != 0)
    door.refuse(Kind::shape, "x ", x.shape(), " has an odd last dimension; gate and up are its halves");
  Dims dims = x.shape();
  dims[-1] /= 2;
  return Shape(dims);
}

void check_limit(const Door& door, const Gate& gate) {
  if (!(gate.limit > 0)) door.refuse(Kind::usage, "a gate's limit is ", gate.limit, ", not above 0");
}

}  // namespace

Tensor activation(const Tensor& x, const Tensor& bias, Activation kind) {
  check_input(Door("activation", x), x, bias);
  Tensor y = empty_like(x);
  count::pass(x, Work::elementwise, count::activation, count::traffic(y, x, bias));
  x.device().kernels().activation(y, x, bias, kind);
  return y;
}

Tensor activation_backward(const Tensor& dy, const Tensor& x, const Tensor& bias, Activation kind) {
  check_input(Door("activation_backward", x), x, bias);
  Tensor dx = empty_like(x);
  activation_backward_into(dx, dy, x, bias, kind);
  return dx;
}

void activation_backward_into(const Tensor& dx, const Tensor& dy, const Tensor& x, const Tensor& bias,
                              Activation kind) {
  const Door door("activation_backward", x);
  check_input(door, x, bias);
  door.floats("dy", dy, x.shape()).floats("dx", dx, x.shape());
  count::pass(x, Work::elementwise, count::activation_backward, count::traffic(dx, dy, x, bias));
  x.device().kernels().activation_backward(dx, dy, x, bias, kind);
}

Tensor gated(const Tensor& x, const Tensor& bias, const Gate& gate) {
  const Door door("gated", x);
  check_input(door, x, bias);
  check_limit(door, gate);
  Tensor y = empty(x.device(), halved(door, x), x.dtype());
  count::pass(y, Work::elementwise, count::activation + 1, count::traffic(y, x, bias));
  x.device().kernels().gated(y, x, bias, gate);
  return y;
}

Tensor gated_backward(const Tensor& dy, const Tensor& x, const Tensor& bias, const Gate& gate) {
  const Door door("gated_backward", x);
  check_input(door, x, bias);
  check_limit(door, gate);
  door.floats("dy", dy, halved(door, x));
  Tensor dx = empty_like(x);
  count::pass(dy, Work::elementwise, count::activation_backward + 2, count::traffic(dx, dy, x, bias));
  x.device().kernels().gated_backward(dx, dy, x, bias, gate);
  return dx;
}

}  // namespace weft::ops
