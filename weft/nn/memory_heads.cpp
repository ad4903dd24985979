#include "weft/nn/memory_heads.h"

#include "weft/base/number.h"
#include "weft/nn/head_trade.h"

namespace weft {

Tensor MemoryHeads::rows(const Tensor& all) const {
  if (!traders_) return all;
  const std::int64_t each = exact(all.dim(0), std::int64_t{traders_->size()});
  return all.slice(0, traders_->rank() * each, each);
}

Tensor MemoryHeads::whole(const Tensor& made, std::int64_t width) const {
  const Tensor heads = made.split(2, {exact(made.dim(2), width), width});
  return traders_ ? Trade(*traders_).to_whole(heads) : heads;
}

Tensor MemoryHeads::steps(const Tensor& x) const {
  const std::int64_t keys = x.dim(2), width = exact(x.elements(), x.dim(0) * x.dim(1) * keys);
  if (!traders_) return x.view({x.dim(0), x.dim(1), keys * width});
  const std::int64_t ranks = traders_->size();
  const Tensor out = empty(x.device(), {exact(x.dim(0), ranks), x.dim(1), keys * ranks, width}, x.dtype());
  Trade(*traders_).to_steps(out, x.view({x.dim(0), x.dim(1), keys, width}));
  return out.view({out.dim(0), out.dim(1), keys * ranks * width});
}

}  // namespace weft
