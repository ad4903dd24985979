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
  virtual void run(const Problem& problem, int threads, float* workspace) = 0;
  /// Of its own form of a second operand [k, n]; 0: it has none.
  virtual std::int64_t packed_bytes(fast::Type type, std::int64_t k, std::int64_t n) = 0;
  virtual void pack(void* to, Matrix b, bool turned, std::int64_t k, std::int64_t n, int threads) = 0;
};

class OwnEngine final : public Engine {
 public:
  explicit OwnEngine(fast::InstructionSet set) : loops_(&product::loops(set)) {}
  const char* name() const override { return "own"; }
  bool takes(const Problem&) const override { return true; }
  std::int64_t bytes(const Problem& problem, int threads) override {
    return plan(problem.form(), threads).bytes();
  }
  void run(const Problem& problem, int threads, float* workspace) override {
    product::run(problem, *loops_, threads, workspace);
  }
  std::int64_t packed_bytes(fast::Type, std::int64_t k, std::int64_t n) override {
    return product::packed_bytes(k, n);
  }
  void pack(void* to, Matrix b, bool turned, std::int64_t k, std::int64_t n, int threads) override {
    product::pack(static_cast<float*>(to), b, turned, k, n, *loops_, threads);
  }

 private:
  const Loops* loops_;
};

}  // namespace weft::product
