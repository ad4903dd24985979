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
///
/// Where sequences of several data-parallel ranks meet in one pass (an expert's tokens do), the passes of
/// each are a tree of their own, and those are added as the data-parallel ranks' are: the tree over the whole
/// batch is the same, whoever adds which part of it.
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
    int uses = 1, sequences = 1;
    int added = 0, closed = 0;  // uses of this sequence, and passes of which all sequences are closed
    int sequence = 0;           // of this pass
    std::vector<std::size_t>
        depth;  // partial sums that wait: of each sequence's passes, then of whole sequences
  };
  void close(Tree& tree);
  void close_sequence(Tree& tree);
  void put_away(Tree& tree, std::size_t stack);
  void add_waiting(Tree& tree, std::size_t stack, int sums);
  static Tensor sum(const Tree& tree);
  Tensor waiting(const Tree& tree, std::size_t stack, std::size_t depth);

  Weights& weights_;
  int microbatches_ = 0;
  std::vector<Tree> trees_;
  std::vector<std::vector<std::vector<Tensor>>> waits_;  // by stack, depth and block
};

/// How many partial sums are complete when leaf i of n is: what is added then.
int sums_after(int i, int n);

}  // namespace weft
