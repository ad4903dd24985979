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
  struct Copy {
    Tensor gradient;
    int use = 0;
  };
  struct Copies {
    std::vector<Copy> here;           // in the order of their uses
    Communicator* holders = nullptr;  // the ranks that hold copies; null where it is this one alone
    int uses = 0;                     // of all of them
  };
  static void add_over_ranks(const Copies& copies);
  std::vector<Copies> here_;  // by name
};

}  // namespace weft
