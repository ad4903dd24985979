#include "weft/nn/whole_linear.h"

#include "weft/nn/region.h"

namespace weft {

Tensor WholeLinear::forward(const Tensor& x) const {
  const Tensor y = product_.forward(x.rows());
  return y.view({x.dim(0), x.dim(1), y.dim(1)});
}

Tensor WholeLinear::backward(Pass& pass, const Tensor& dy, const Tensor& x) {
  product_.owe_weight_grads(pass.weight_grads(), {for_whole_weight(tp_, dy).rows()},
                            for_whole_weight(tp_, x).rows());
  return product_.input_grad({dy.rows()}).view(x.shape());
}

}  // namespace weft
