// Norms of single tensors of the model, whoever holds which part of them.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/optim/states.h"
#include "weft/tensor/args.h"
#include "weft/tensor/exact_sum.h"

namespace weft {

/// A run of one parameter's elements that a rank updates.
struct TensorRun {
  std::size_t tensor;  // its number, the same on all ranks of the stage
  std::int64_t from;   // where the run starts in the part that is owned
  std::int64_t count;
};

/// `of_each` sums of squares for every parameter. They are exact, so neither the layout nor ZeRO's borders
/// show. Nothing is asked of the heap after it is made.
class TensorNorms {
 public:
  TensorNorms(const Weights& weights, int of_each);
  void clear();
  /// Adds what this rank counts of x, which is as long as the owned part, to each tensor's sum.
  void add(int which, std::size_t block, const OwnedPart& own, const Tensor& x);
  /// Collective over the ranks that hold parts of the stage's tensors. Here the host waits, once for all
  /// tensors.
  void sum_over_ranks();
  double operator()(std::size_t tensor, int which) const;
  /// In place of that, where there are two of each: every tensor's first norm over its second, f32 [tensors],
  /// which the device keeps to itself. Collective alike.
  Tensor ratios(const NormRatioArgs& how) const;
  std::size_t tensors() const { return host_.size() / std::size_t(of_each_ * exact_digits); }
  std::size_t tensors(View view) const {
    return view == View::dense ? std::size_t(dense_) : tensors() - std::size_t(dense_);
  }
  std::size_t number(std::size_t block, std::size_t slot) const { return numbers_[block][slot]; }

  /// visit(TensorRun) for each parameter that the part holds elements of.
  template <class Visit>
  void each_tensor(std::size_t block, const OwnedPart& own, const Visit& visit) const {
    each_slot(weights_.blocks()[block], own, [&](std::size_t slot, std::int64_t from, std::int64_t count) {
      visit(TensorRun{.tensor = numbers_[block][slot], .from = from, .count = count});
    });
  }

 private:
  std::int64_t place_of(std::size_t tensor, int which) const;
  Tensor digits_of(std::size_t tensor, int which) const;
  void add_over_ranks() const;
  const Weights& weights_;
  int of_each_;
  std::vector<std::vector<std::size_t>> numbers_;  // by block and slot
  Tensor digits_;                                  // f64 [tensors * of_each * exact_digits]
  std::vector<double> host_;                       // the same, of all ranks
  std::int64_t dense_ = 0;                         // tensors of the dense view, which come first
};

}  // namespace weft
