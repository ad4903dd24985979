// Who multiplies two matrices: our own loops or a library's.
#pragma once

#include "weft/backend/cpu/product/run.h"

namespace weft::product {

/// A product has the same bits with any number of threads; exact mode tries that itself (check.h).
class Engine {
 public:
  virtual ~Engine() = default;
  virtual const char* name() const = 0;
  /// Whether it computes such a product at all; does not depend on m and n.
  virtual bool takes(const Problem& problem) const = 0;
  /// Whether such a product is better computed here than by our own loops. Exact mode does not ask: there m
  /// and n, on which this answer may depend, may not choose.
  virtual bool pays(const Problem&) const { return true; }
  /// Workspace of run(), aligned to 64 when it is given.
  virtual std::int64_t bytes(const Problem& problem, int threads) = 0;
  /// The same for any group of at most so many rows: m, or k where the first operand is transposed.
  virtual std::int64_t grouped_bytes(const Problem& most, int threads) { return bytes(most, threads); }
  virtual void run(const Problem& problem, int threads, float* workspace) = 0;
};

class OwnEngine final : public Engine {
 public:
  explicit OwnEngine(fast::InstructionSet set) : loops_(&product::loops(set)) {}
  const char* name() const override { return "own"; }
  bool takes(const Problem&) const override { return true; }
  std::int64_t bytes(const Problem& problem, int threads) override {
    return plan(problem.form(), threads).bytes();
  }
  std::int64_t grouped_bytes(const Problem& most, int threads) override {
    return product::grouped_bytes(most.form(), most.a_turned, threads);
  }
  void run(const Problem& problem, int threads, float* workspace) override {
    product::run(problem, *loops_, threads, workspace);
  }

 private:
  const Loops* loops_;
};

}  // namespace weft::product
