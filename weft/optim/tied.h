// Weights that two pipeline stages hold: one weight, two copies, one gradient.
#pragma once

#include <memory>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/optim/weights.h"

namespace weft {

/// Copies start equal, because initial weights are addressed by name, and stay equal, because every copy sees
/// the sum of all gradients. Copies may live on two ranks of a pipeline or in two stages of one rank.
class TiedWeights {
 public:
  /// Collective over the pipeline: finds who else holds what is tied here.
  TiedWeights(Weights& weights, Communicator& along_pp);
  /// After gradients were added over data-parallel ranks, before anybody looks at them. Where states are cut,
  /// ranks add what they update.
  void add_gradients() const;

 private:
  struct Copies {
    std::vector<Tensor> gradients;  // of this rank, in the order of stages
  };
  std::vector<Copies> here_;              // by name
  std::unique_ptr<Communicator> others_;  // the ranks that hold copies; null where it is this rank alone
};

}  // namespace weft
