// Our own product of bf16 by an instruction that adds the products of two pairs.
#pragma once

#include <memory>

#include "weft/backend/cpu/product/engine.h"

namespace weft::product {

/// What is multiplied of words, the last of an odd number of k left out.
Problem in_words(Problem problem);

/// Pairs that follow each other in k are words, and words are what the walk over floats multiplies: half as
/// many. Where k's lie side by side nothing is copied that f32 would not copy; where they are rows, two rows
/// are woven into one. The last of an odd number of k is added by itself.
class PairEngine final : public Engine {
 public:
  PairEngine(fast::InstructionSet set, const PairLoops& pairs);
  /// Null where the set has no such instruction.
  static std::unique_ptr<PairEngine> open(fast::InstructionSet set);
  const char* name() const override { return "own, in pairs"; }
  bool takes(const Problem& problem) const override;
  std::int64_t bytes(const Problem& problem, int threads) override;
  std::int64_t grouped_bytes(const Problem& most, int threads) override;
  void run(const Problem& problem, int threads, float* workspace) override;

 private:
  OwnEngine own_;
  Loops loops_;
};

}  // namespace weft::product
