// A stack of partial sums: the left half waits while the right one is made.
#include "weft/optim/grad_tree.h"

#include "weft/ops/elementwise.h"

namespace weft {

int sums_after(int i, int n) {
  if (n <= 1) return 0;
  const int left = (n + 1) / 2;
  if (i < left) return sums_after(i, left);
  return sums_after(i - left, n - left) + (i == n - 1 ? 1 : 0);
}

GradTree::GradTree(Weights& weights) : weights_(weights) {
  for (const WeightBlock& block : weights_.blocks())
    for (const WeightSlot& slot : block.slots) gradients_ += slot.parameter->uses;
}

void GradTree::begin(int microbatches) {
  microbatches_ = microbatches;
  added_ = closed_ = 0;
  depth_ = 0;
}

void GradTree::added() {
  if (++added_ < gradients_) return;
  added_ = 0;
  close();
}

void GradTree::close() {
  for (int sums = sums_after(closed_, microbatches_); sums > 0; --sums) {
    --depth_;
    for (std::size_t i = 0; i < weights_.blocks().size(); ++i) {
      const Tensor& grads = weights_.blocks()[i].grads;
      ops::add_into(grads, waits_[depth_][i], grads);
    }
  }
  if (++closed_ < microbatches_) put_away();
}

void GradTree::put_away() {
  if (depth_ == waits_.size()) waits_.emplace_back(weights_.blocks().size());
  for (std::size_t i = 0; i < weights_.blocks().size(); ++i) {
    const Tensor& grads = weights_.blocks()[i].grads;
    Tensor& kept = waits_[depth_][i];
    if (!kept) kept = empty(weights_.device(), grads.shape(), Dtype::f32, Use::gradients);
    ops::copy_into(kept, grads);
    ops::fill(grads, 0);
  }
  ++depth_;
}

}  // namespace weft
