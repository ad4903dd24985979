// Weights that several layers hold: one weight, copies, one gradient.
#pragma once

#include <vector>

#include "weft/optim/weights.h"

namespace weft {

/// Copies start equal, because initial weights are addressed by name, and stay equal, because every copy sees
/// the sum of all gradients. Copies may live on two ranks of a pipeline or in two stages of one rank.
class TiedWeights {
 public:
  explicit TiedWeights(Weights& weights);
  /// After gradients were added over data-parallel ranks, before anybody looks at them. Where states are cut,
  /// ranks add what they update.
  void add_gradients() const;

 private:
  struct Copies {
    std::vector<Tensor> gradients;    // of this rank, in the order of stages
    Communicator* holders = nullptr;  // the ranks that hold copies; null where it is this one alone
  };
  std::vector<Copies> here_;  // by name
};

}  // namespace weft
