#include "weft/ops/softmax.h"

#include "weft/ops/count.h"
#include "weft/ops/door.h"

namespace weft::ops {

Tensor softmax(const Tensor& x) {
  Door("softmax", x).floats("x", x).ranked("x", x, 1, Dims::max_rank);
  Tensor y = empty_like(x);
  count::pass(x, Work::elementwise, count::softmax, count::traffic(y, x));
  x.device().kernels().softmax(y, x);
  return y;
}

}  // namespace weft::ops
