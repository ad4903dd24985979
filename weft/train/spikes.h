// Losses far above what a run began with, by Megatron's rule.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

namespace weft {

class SpikeWatch {
 public:
  static constexpr std::int64_t first = 100;
  static constexpr double factor = 10;

  /// Above it a loss is one.
  double most() const { return seen_ < first ? std::numeric_limits<double>::infinity() : factor * largest_; }
  /// Told of every loss; gives the largest of the first ones where this one is more than `factor` times as
  /// much.
  std::optional<double> look(double loss) {
    if (seen_ < first) {
      ++seen_;
      largest_ = std::max(largest_, loss);
      return std::nullopt;
    }
    return loss > factor * largest_ ? std::optional(largest_) : std::nullopt;
  }

 private:
  std::int64_t seen_ = 0;
  double largest_ = 0;
};

}  // namespace weft
