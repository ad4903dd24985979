// A stack of partial sums: the left half waits while the right one is made.
#include "weft/optim/grad_tree.h"

#include <algorithm>

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
      for (const WeightSlot& slot : block.slots_of(bucket)) {
        const Parameter& p = *slot.parameter;
        trees_.push_back({.block = i,
                          .parameter = &p,
                          .at = slot.at,
                          .elements = p.shape.elements(),
                          .uses = p.uses,
                          .sequences = p.sequences,
                          .depth = std::vector<std::size_t>(std::size_t(p.sequences) + 1)});
      }
  }
}

void GradTree::begin(int microbatches) {
  microbatches_ = microbatches;
  for (Tree& tree : trees_) {
    tree.added = tree.closed = tree.sequence = 0;
    std::ranges::fill(tree.depth, 0);
  }
}

void GradTree::added(int parameter) {
  Tree& tree = trees_[std::size_t(parameter)];
  if (++tree.added < tree.uses) return;
  tree.added = 0;
  close(tree);
}

Tensor GradTree::sum(const Tree& tree) { return tree.parameter->grad.sum().view({tree.elements}); }

Tensor GradTree::waiting(const Tree& tree, std::size_t stack, std::size_t depth) {
  if (stack >= waits_.size()) waits_.resize(stack + 1);
  auto& levels = waits_[stack];
  while (depth >= levels.size()) levels.emplace_back(weights_.blocks().size());
  Tensor& block = levels[depth][tree.block];
  if (!block)
    block = empty(weights_.device(), {weights_.blocks()[tree.block].elements}, Dtype::f32, Use::gradients);
  return block.slice(0, tree.at, tree.elements);
}

void GradTree::add_waiting(Tree& tree, std::size_t stack, int sums) {
  const Tensor here = sum(tree);
  for (; sums > 0; --sums) ops::add_into(here, waiting(tree, stack, --tree.depth[stack]), here);
}

// A leaf: one sequence of one pass. The last pass's ends the sequence's own tree.
void GradTree::close(Tree& tree) {
  const auto stack = std::size_t(tree.sequence);
  add_waiting(tree, stack, sums_after(tree.closed, microbatches_));
  if (tree.closed + 1 < microbatches_)
    put_away(tree, stack);
  else
    close_sequence(tree);
  if (++tree.sequence < tree.sequences) return;
  tree.sequence = 0;
  ++tree.closed;
}

void GradTree::close_sequence(Tree& tree) {
  if (tree.sequences == 1) return;
  const auto stack = std::size_t(tree.sequences);
  add_waiting(tree, stack, sums_after(tree.sequence, tree.sequences));
  if (tree.sequence + 1 < tree.sequences) put_away(tree, stack);
}

void GradTree::put_away(Tree& tree, std::size_t stack) {
  ops::copy_into(waiting(tree, stack, tree.depth[stack]++), sum(tree));
  tree.parameter->grad.renew();
}

}  // namespace weft
