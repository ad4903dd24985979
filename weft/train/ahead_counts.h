// Tokens that count in the losses of words further on, beside those that count in the next word's.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/nn/pass.h"

namespace weft {

/// Of the microbatches of a step. A guess k places beyond the next word counts where the mask does k places
/// on, and the text reaches there.
class AheadCounts {
 public:
  /// Depths of guesses; `context`: ranks that share sequences. Asks the device only where the host that made
  /// a batch did not count.
  void count(std::span<const Batch> microbatches, int depths, Communicator& context);
  /// Factors of such losses, from those of the next word's; `counts`: its counting tokens, by microbatch, of
  /// which `together` in a row share a mean (0: each has its own).
  void weigh(std::span<LossFactors> factors, std::span<const double> counts, int together) const;
  /// A counting token's share in the mean of a microbatch; without such means the microbatch's part in all
  /// tokens.
  void share(std::span<const double> counts, int together);
  float share_of(int ahead, int microbatch) const {
    return shares_[std::size_t(microbatch)][std::size_t(ahead) - 1];
  }

 private:
  using ByDepth = std::array<double, most_ahead>;
  /// Of the next word's and of this depth's.
  struct Both {
    double next = 0, ahead = 0;
  };
  Both counts_of(std::span<const double> counts, std::size_t microbatch, int together, int depth) const;
  void ask(std::span<const Batch> microbatches, Communicator& context);

  int depths_ = 0;
  std::vector<ByDepth> counted_;  // by microbatch: tokens that count k places on
  std::vector<std::array<float, most_ahead>> shares_;
};

}  // namespace weft
