// What the update rules share that speak in one bit an element: who writes to whom, and steps whose second
// moments stay.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/ops/adam.h"
#include "weft/optim/config.h"
#include "weft/optim/sign_reduction.h"
#include "weft/optim/states.h"

namespace weft {

/// Elements that are rounded together: one size stands for all of them.
struct OneBitLetter {
  const Parameter* first;  // of what it holds: errors are called by it
  View view;
  std::int64_t elements;
};

/// A parameter that a rule of one bit updates, which lies whole on every data-parallel rank.
struct OneBitTensor {
  std::size_t block;
  const WeightSlot* slot;
  std::int64_t elements() const { return slot->parameter->shape.elements(); }
  OwnedPart part() const { return {.at = slot->at, .kept = slot->at, .count = elements()}; }
};
/// Those of dense weights first.
std::vector<OneBitTensor> one_bit_tensors(const Weights& weights);

/// Means over ranks that read other samples, dense weights among theirs and experts among theirs, and the
/// errors of rounding, which are each rank's own.
class OneBitMail {
 public:
  /// Letters of dense weights come first.
  OneBitMail(const Weights& weights, std::span<const OneBitLetter> letters);
  /// One letter a tensor.
  OneBitMail(const Weights& weights, std::span<const OneBitTensor> tensors);
  /// x f32 [elements], one a letter, become about their means. Collective; nothing where nobody else is.
  void reduce(std::span<const Tensor> x);
  void forget_errors();
  void each_error(const VisitHeld& visit) const;
  /// What of a parameter is this rank's own: a row of the table that all ranks' would make.
  const WeightBlock& stands_for_ranks() const { return of_ranks_; }
  Held of_rank(const Parameter& parameter, View view, const char* suffix, const Tensor& memory) const;

 private:
  std::size_t begin(View view) const { return view == View::dense ? 0 : dense_; }
  const Weights& weights_;
  std::vector<OneBitLetter> letters_;
  std::size_t dense_ = 0;  // letters of dense weights
  std::array<std::optional<SignReduction>, 2> signs_;
  WeightBlock of_ranks_;  // stands for where errors are: every rank has its own
};

/// m = beta m + (1 - beta) grad_scale g
void add_to_momentum(const UpdateRun& run, const Tensor& m, double beta, double grad_scale);
/// Elements whose gradient was always zero while second moments learned have none: their momentum is zero, or
/// what signs make of it would be divided by epsilon. Writes where gradients lay.
void leave_out_dead(const UpdateRun& run, const Tensor& m, const Tensor& v);
/// 1 where v is not zero, else 0: out [n], which x [n] lends its finite numbers.
void find_alive(const Tensor& out, const Tensor& x, const Tensor& v);
/// Adam without corrections: with moments that learn, or with those that there are.
enum class Moments : std::uint8_t { learn, stay };
void step_without_corrections(const UpdateRun& run, const AdamState& state, const OptimizerConfig& config,
                              Moments moments, double grad_scale);
/// Where gradients lay: m / (sqrt(v) + epsilon) + decay w, of moments as they are.
void direction_into_grads(const UpdateRun& run, const Tensor& m, const Tensor& v, double epsilon,
                          double decay);

}  // namespace weft
