// Gradients of microbatches as a balanced tree: the sum does not show how many of them this rank has.
#pragma once

#include <vector>

#include "weft/optim/weights.h"

namespace weft {

/// Layers add a microbatch into the blocks' gradients; close() makes it a leaf of the tree over the step's
/// microbatches, in which [a, b) is [a, m) plus [m, b), m = a + (b - a + 1) / 2: what communicators do with
/// ranks. Partial sums wait in further blocks, as many as the tree is deep.
class GradTree {
 public:
  explicit GradTree(Weights& weights);
  void begin(int microbatches);
  /// A parameter got a gradient; with the last one of its microbatch that becomes a leaf.
  void added();

 private:
  void close();
  void put_away();
  Weights& weights_;
  int gradients_ = 0;  // of a microbatch
  int added_ = 0, closed_ = 0, microbatches_ = 0;
  std::size_t depth_ = 0;                   // partial sums that wait
  std::vector<std::vector<Tensor>> waits_;  // by depth and block
};

/// How many partial sums are complete when leaf i of n is: what is added then.
int sums_after(int i, int n);

}  // namespace weft
