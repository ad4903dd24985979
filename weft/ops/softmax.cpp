#include "weft/ops/softmax.h"

#include "weft/ops/count.h"
#include "weft/ops/door.h"

namespace weft::ops {

Tensor softmax(const Tensor& x, Mask mask, const Tensor& padding) {
  Door("softmax", x).floats("x", x);
  Tensor y = empty_like(x);
  softmax_into(y, x, mask, padding);
  return y;
}

void softmax_into(const Tensor& y, const Tensor& x, Mask mask, const Tensor& padding) {
  const Door door("softmax", x);
  door.floats("x", x).floats("y", y, x.shape());
  door.ranked("x", x, padding ? 3 : mask == Mask::causal ? 2 : 1, Dims::max_rank);
  if (padding) door.holds("padding", padding, Dtype::u8, {x.dim(0), x.dim(-1)});
  count::pass(x, Work::elementwise, count::softmax, count::traffic(y, x, padding));
  x.device().kernels().softmax(y, x, mask, padding);
}

Tensor softmax_backward(const Tensor& dy, const Tensor& y) {
  const Door door("softmax_backward", y);
  door.floats("y", y).ranked("y", y, 1, Dims::max_rank).floats("dy", dy, y.shape());
  Tensor dx = empty_like(dy);
  count::pass(y, Work::elementwise, count::softmax_backward, count::traffic(dx, dy, y));
  y.device().kernels().softmax_backward(dx, dy, y);
  return dx;
}

Tensor log_sum_exp(const Tensor& x) {
  const Door door("log_sum_exp", x);
  door.floats("x", x).ranked("x", x, 1, Dims::max_rank);
  Dims dims;
  for (int i = 0; i + 1 < x.rank(); ++i) dims.push_back(x.dim(i));
  Tensor out = empty(x.device(), Shape(dims));
  count::pass(x, Work::elementwise, count::softmax, count::traffic(out, x));
  x.device().kernels().log_sum_exp(out, x);
  return out;
}

}  // namespace weft::ops
