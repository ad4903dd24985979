// What context-parallel ranks exchange to have whole sequences of fewer heads, and back.
#pragma once

#include "weft/comm/communicator.h"
#include "weft/tensor/tensor.h"

namespace weft {

/// Ranks hold the chunks of a sequence that data/context_split.h gives them.
class Trade {
 public:
  explicit Trade(Communicator& circle) : circle_(circle), ranks_(circle.size()) {}
  /// x [s/c, b, g, ...] -> [s, b, g/c, ...]
  Tensor to_whole(const Tensor& x) const;
  /// x [s, b, g/c, ...] -> into [s/c, b, g, ...]
  void to_steps(const Tensor& into, const Tensor& x) const;
  /// [b, s/c] -> [b, s]
  Tensor whole_segments(const Tensor& mine) const;

 private:
  Tensor empty_parts(const Tensor& x, std::int64_t steps, std::int64_t heads) const;
  Tensor exchanged(const Tensor& out) const;

  Communicator& circle_;
  std::int64_t ranks_;
};

}  // namespace weft
