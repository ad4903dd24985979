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
  for (std::size_t i = 0; i < weights_.blocks().size(); ++i) {
    const WeightBlock& block = weights_.blocks()[i];
    for (const WeightBucket& bucket : block.buckets)
      for (const WeightSlot& slot : block.slots_of(bucket))
        trees_.push_back({.block = i,
                          .parameter = slot.parameter,
                          .at = slot.at,
                          .elements = slot.parameter->shape.elements(),
                          .uses = slot.parameter->uses});
  }
}

void GradTree::begin(int microbatches) {
  microbatches_ = microbatches;
  for (Tree& tree : trees_) {
    tree.added = tree.closed = 0;
    tree.depth = 0;
  }
}

void GradTree::added(int parameter) {
  Tree& tree = trees_[std::size_t(parameter)];
  if (++tree.added < tree.uses) return;
  tree.added = 0;
  close(tree);
}

Tensor GradTree::sum(const Tree& tree) { return tree.parameter->grad.sum().view({tree.elements}); }

Tensor GradTree::waiting(const Tree& tree, std::size_t depth) const {
  return waits_[depth][tree.block].slice(0, tree.at, tree.elements);
}

void GradTree::close(Tree& tree) {
  const Tensor here = sum(tree);
  for (int sums = sums_after(tree.closed, microbatches_); sums > 0; --sums)
    ops::add_into(here, waiting(tree, --tree.depth), here);
  if (++tree.closed < microbatches_) put_away(tree);
}

void GradTree::put_away(Tree& tree) {
  if (tree.depth == waits_.size()) waits_.emplace_back(weights_.blocks().size());
  Tensor& block = waits_[tree.depth][tree.block];
  if (!block)
    block = empty(weights_.device(), {weights_.blocks()[tree.block].elements}, Dtype::f32, Use::gradients);
  const Tensor here = sum(tree);
  ops::copy_into(waiting(tree, tree.depth++), here);
  ops::fill(here, 0);
}

}  // namespace weft
