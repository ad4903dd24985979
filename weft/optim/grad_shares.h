// Whole gradients on their way to ranks that keep a share of them each.
#pragma once

#include <cstddef>
#include <vector>

#include "weft/comm/pending.h"
#include "weft/optim/block_sum.h"
#include "weft/optim/weights.h"

namespace weft {

/// What arrives takes the place of this rank's share, or is added to it, in the order in which it was sent. A
/// bucket of each block may be on its way at once, which is what a layer has: whoever sends more waits for
/// the oldest, so that whole gradients take no more memory than a few layers.
class GradShares {
 public:
  explicit GradShares(const Weights& weights);

  enum class Arrive : std::uint8_t { in_its_place, on_top };
  /// whole [bucket's elements], of a block whose gradients are cut; nobody else may write to it any more.
  void send(const WeightBlock& block, std::size_t bucket, Tensor whole, Arrive how);
  /// Everything that was sent has arrived.
  void finish();

 private:
  struct Trip {
    Tensor share;     // of the block's gradients
    Tensor arriving;  // empty where the share itself is written to
    Arrive how = Arrive::in_its_place;
    Pending pending;
    BlockSum terms;  // where they travel as small integers
  };
  static void end(Trip& trip);
  Dtype wire_;
  BlockCode code_;
  std::vector<std::int64_t> ones_;
  std::vector<Trip> under_way_;  // a ring
  std::size_t next_ = 0;         // the oldest
};

}  // namespace weft
