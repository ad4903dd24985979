// How sequences are cut over ranks, for sums over tokens that must not show it.
//
// In exact mode the leaf of such a sum is a whole sequence. Where context-parallel ranks hold parts of it,
// what a gradient is made of comes together again, and each rank makes another part of the gradient: no sum
// over tokens is cut. Gains and biases of norms are too small to be worth that: they are summed over fixed
// pieces of the sequence, and the pieces' sums come together.
#pragma once

#include "weft/comm/communicator.h"

namespace weft {

/// A part [from, from + count) of something.
struct Share {
  std::int64_t from = 0, count = 0;
};

/// Ranks that hold parts of the same sequences; a sequence lies in 2c chunks, of which rank i has the i-th
/// from either end.
class TokenCut {
 public:
  explicit TokenCut(Communicator* circle = nullptr) : circle_(circle) {}
  int rank() const { return circle_ ? circle_->rank() : 0; }
  int ranks() const { return circle_ ? circle_->size() : 1; }
  bool cut() const { return ranks() > 1; }
  Communicator& circle() const { return *circle_; }
  /// x [s/c, ...], or of any number of rows a step -> [s, ...], in the order of the sequence
  Tensor whole(const Tensor& x) const;
  /// x [s, ...] -> this rank's [s/c, ...]
  Tensor here(const Tensor& x) const;
  /// This rank's part of n things that all could do.
  Share share(std::int64_t n) const;

 private:
  Communicator* circle_;
};

/// So many pieces of a sequence, at most, have sums of their own.
inline constexpr std::int64_t most_pieces = 16;
std::int64_t pieces_of(std::int64_t steps);

/// parts [n, ...] -> [...]: their sum as a balanced tree, in which [a, b) is [a, m) plus [m, b),
/// m = a + (b - a + 1) / 2; parts are overwritten.
Tensor added_as_tree(const Tensor& parts);

}  // namespace weft
