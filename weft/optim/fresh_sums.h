// Sums of gradients that begin anew: of a matrix nothing is zeroed, since its first product takes the place
// of what lies there. That spares a write and a read of every weight.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weft/nn/parameter.h"

namespace weft {

struct WeightSlot;

class FreshSums {
 public:
  FreshSums() = default;
  /// Of slots in memory that holds the elements [from, from + elements).
  FreshSums(std::span<const WeightSlot> slots, std::int64_t from, std::int64_t elements);
  /// Every sum begins anew; parameters are bound to their parts of `memory`.
  void begin(const Tensor& memory) const;

 private:
  /// So many runs of elements, each `step` behind the last: layers of a kind are alike.
  struct Runs {
    std::int64_t at, count, times, step;
  };
  struct Run {
    std::int64_t at, count;
  };
  Runs take_progression(std::vector<Run>& left);
  std::vector<const GradSink*> matrices_;
  std::vector<Runs> zeros_;  // vectors, and what fills up storage
};

}  // namespace weft
