// The backward of enter is leave, and the other way round.
#include "weft/nn/region.h"

#include "weft/base/number.h"

namespace weft {

Arriving enter(const TensorParallel& tp, const Tensor& x) {
  if (!tp.sequence_cut()) return {x, {}};
  const Tensor full = empty(x.device(), {x.dim(0) * tp.size(), x.dim(1), x.dim(2)}, x.dtype());
  return {full, tp.circle.all_gather(full, x)};
}

Arriving leave(const TensorParallel& tp, const Tensor& x) {
  if (tp.between == Between::as_around) return {x, {}};
  if (!tp.sequence_cut()) return {x, tp.circle.all_reduce(x, Reduce::sum)};
  const Tensor shard = empty(x.device(), {exact(x.dim(0), tp.size()), x.dim(1), x.dim(2)}, x.dtype());
  return {shard, tp.circle.reduce_scatter(shard, x)};
}

Tensor for_whole_weight(const TensorParallel& tp, const Tensor& x) {
  return tp.sequence_cut() && tp.sums.whole_sequences() ? enter(tp, x).wait() : x;
}

}  // namespace weft
