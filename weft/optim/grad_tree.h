// Gradients of microbatches as a balanced tree: the sum does not show how many of them this rank has.
#pragma once

#include <vector>

#include "weft/optim/weights.h"

namespace weft {

/// Layers add a microbatch into a parameter's gradient; with the last use of it in that microbatch this
/// becomes a leaf of the tree over the step's microbatches, in which [a, b) is [a, m) plus [m, b),
/// m = a + (b - a + 1) / 2: what communicators do with ranks. Every parameter has a tree of its own, because
/// the stages of a rank are not at the same microbatch. Partial sums wait in further blocks, as many as the
/// tree is deep.
class GradTree {
 public:
  explicit GradTree(Weights& weights);
  void begin(int microbatches);
  /// A use of a parameter has added its gradient. Parameters are numbered by block, bucket and slot.
  void added(int parameter);

 private:
  struct Tree {
    std::size_t block = 0;
    const Parameter* parameter = nullptr;
    std::int64_t at = 0, elements = 0;  // in the block
    int uses = 1;
    int added = 0, closed = 0;  // uses of this microbatch, and microbatches
    std::size_t depth = 0;      // partial sums that wait
  };
  void close(Tree& tree);
  void put_away(Tree& tree);
  static Tensor sum(const Tree& tree);
  Tensor waiting(const Tree& tree, std::size_t depth) const;

  Weights& weights_;
  int microbatches_ = 0;
  std::vector<Tree> trees_;
  std::vector<std::vector<Tensor>> waits_;  // by depth and block
};

/// How many partial sums are complete when leaf i of n is: what is added then.
int sums_after(int i, int n);

}  // namespace weft
