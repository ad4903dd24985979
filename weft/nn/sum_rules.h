// Exact mode in one place: how sums are taken where bits must not show the layout.
//
// Fast mode cuts a sum as suits the machine. Exact mode fixes the units of every sum, and ranks own whole
// sub-trees of them. A layer does not ask which mode it is: it is built from parts that were given this
// value, and each of them does what the mode wants:
// - a contraction that ranks cut is exact_slabs slabs, a tree in f32 (ColumnLinear, RowLinear);
// - a weight's gradient sees whole sequences, each rank makes some of its rows (TokenCut);
// - gains and biases of norms add pieces of a sequence and parts of a key head, as a tree (NormRows);
// - a key's gradient adds parts of its group's query heads, a tree in f32 (KeyParts);
// - attention over cut sequences trades heads, or brings sequences together (ContextParallel);
// - the sequences of the global batch are a tree (GradTree).
//
// Whether the products of a device hold their bits is the device's concern: it is opened for exact mode.
#pragma once

#include <cstdint>
#include <numeric>

#include "weft/mesh/axes.h"
#include "weft/nn/token_cut.h"

namespace weft {

/// So many slabs has every contraction that ranks may cut, and so many ranks may cut it at most.
inline constexpr int exact_slabs = 8;

struct SumRules {
  bool exact = false;

  // ---- for parts, and for who puts them together; a layer asks none of this
  /// Terms of a cut contraction are slabs, in f32 until they are added.
  bool in_slabs() const { return exact; }
  /// A weight's gradient sees whole sequences, whoever holds parts of them.
  bool whole_sequences() const { return exact; }
  /// Gradients of what norms have are added piece by piece.
  bool in_pieces() const { return exact; }
  /// No sum over keys or queries is cut: ranks that share a sequence see all of it.
  bool whole_attention() const { return exact; }
  /// Several uses of one weight have gradients of their own, wherever they stand.
  bool uses_apart() const { return exact; }
  /// The microbatches of a rank are added first, and as a tree of sequences.
  bool tree_of_sequences() const { return exact; }
  /// Of a contraction that so many ranks share, those of one rank.
  int slabs(int ranks) const { return exact ? exact_slabs / ranks : 1; }
  /// What terms of a sum are kept and sent as: a sum of terms is rounded once.
  Dtype term(Dtype stored) const { return exact ? Dtype::f32 : stored; }
  /// How tokens are cut for sums over them; in fast mode every rank adds what it has.
  TokenCut tokens(Communicator* context) const { return exact ? TokenCut(context) : TokenCut(); }
  /// The same of ranks that share sequences and, in exact mode, the words of an output matrix.
  TokenCut words(const TokenCut& context) const { return exact ? context : TokenCut(); }
  /// Axes along which copies of a small parameter see other tokens or heads: its gradients are then terms,
  /// but in exact mode, where the layer brings them together.
  Axes terms(Axes along) const { return exact ? Axes() : along; }
  /// In how many parts the query heads of a key group are added: as many as ranks may share a group, whatever
  /// the layout.
  std::int64_t key_parts(std::int64_t heads, std::int64_t groups) const {
    const std::int64_t most = std::gcd(std::int64_t{exact_slabs}, heads);
    return exact && most > groups && most % groups == 0 ? most / groups : 1;
  }
  /// Samples of a microbatch that go through the layers together: sums over tokens have sequences as leaves.
  std::int64_t samples_of_a_pass(std::int64_t micro_batch) const { return exact ? 1 : micro_batch; }
};

}  // namespace weft
