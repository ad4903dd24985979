// Sums over ranks whose terms travel as integers of four bits.
#pragma once

#include <cstdint>
#include <span>

#include "weft/comm/pending.h"
#include "weft/optim/weights.h"
#include "weft/tensor/args.h"

namespace weft {

/// ZeRO++'s qgZ: instead of a reduce-scatter every rank packs what each other one is to add up, these are
/// traded, and whoever gets them adds them in f32, in the order of ranks. Where ranks have others near them,
/// those trade first, each for all who have its place among theirs; what they add is packed once more and
/// traded among these: so a share leaves the near ranks once, not once from each of them.
class BlockSum {
 public:
  /// whole f32 [ranks * share]; nobody else may write to it before it sets out. `ones` are as many as ranks.
  void set_out(const Readers& readers, const Tensor& whole, const BlockCode& code,
               std::span<const std::int64_t> ones);
  bool under_way() const { return bool(theirs_); }
  /// f32 [share]: this rank's part of the sum. Collective as setting out is.
  Tensor arrive();

 private:
  Tensor sum_of(int share) const;
  void trade(Communicator& circle, const Tensor& mine);

  const Readers* readers_ = nullptr;
  BlockCode code_;
  std::span<const std::int64_t> ones_;
  std::int64_t share_ = 0;  // elements
  Tensor theirs_;           // u8 [ranks that trade, shares, bytes of a share]
  Pending pending_;
};

}  // namespace weft
