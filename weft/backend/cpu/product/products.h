// Products of tensors: shapes, batches and groups become problems for an engine, workspace comes from the
// pool.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "weft/backend/cpu/product/check.h"
#include "weft/backend/cpu/product/pairs.h"
#include "weft/tensor/kernels.h"

namespace weft::product {

struct ProductsOptions {
  fast::InstructionSet set = fast::best_here();
  bool exact = false;
  std::shared_ptr<ProductTrials> trials = nullptr;  // null: engines are tried for this device alone
};

/// One for each device, with or without numbers: the same engines are chosen, and asked for the same
/// workspace.
class Products {
 public:
  explicit Products(const ProductsOptions& options);
  /// An engine computes every product of a type that it takes. Where bits must not depend on how m and n are
  /// cut, it is tried first; one that fails is not taken, and what is said about it is returned.
  std::string use(fast::Type type, std::shared_ptr<Engine> engine, int threads);
  /// For exact mode: the engine computes those forms whose bits do not depend on how m and n are cut. Each
  /// form is tried when it is first met.
  void use_form_by_form(fast::Type type, std::shared_ptr<Engine> engine, int threads);
  /// An engine computes those products of groups of bf16 rows that it takes; nothing where it is null.
  void use_for_groups(std::shared_ptr<Engine> engine);
  /// Exact mode cannot be had where our own product's bits depend on how it is cut; fails then.
  void check_own(int threads);

  std::int64_t matmul_bytes(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs& how,
                            int threads);
  void matmul(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs& how);
  std::int64_t grouped_bytes(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs& how,
                             int threads);
  void grouped_matmul(const Tensor& out, const Tensor& a, const Tensor& b, const Groups& groups,
                      const MatmulArgs& how);

 private:
  Engine& engine(const Problem& problem);
  /// Groups have other sizes in every step, for each of which a library would make something first.
  Engine& group_engine(const Problem& problem);

  bool exact_;
  std::shared_ptr<ProductTrials> trials_;
  OwnEngine own_;
  std::shared_ptr<Engine> groups_;                  // null in exact mode, which sums the same everywhere
  std::array<std::shared_ptr<Engine>, 3> by_type_;  // null: our own
  struct Tried {
    CutForm form;
    bool holds;
  };
  bool holds(Engine& engine, const Problem& problem);
  int threads_ = 0;           // above 0: forms are tried, with so many
  std::vector<Tried> tried_;  // a dozen
};

/// The i-th product of a batch, or the only one.
Problem problem(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs& how,
                std::int64_t i = 0);

}  // namespace weft::product
