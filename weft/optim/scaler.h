// The loss scale of f16 training: small gradients are lifted out of the denormals, and lowered again before
// the update.
#pragma once

#include <algorithm>
#include <optional>

namespace weft {

struct ScalerConfig {
  std::optional<double> constant;  // never changes; a step that is not finite is still skipped
  double initial = 4294967296.0, least = 1.0;
  int window = 1000;   // clean steps before the scale doubles
  int hysteresis = 2;  // bad steps that are let pass before it halves
};

/// Pure: what a checkpoint keeps is the three numbers of state().
class LossScaler {
 public:
  struct State {
    double scale = 1;
    int clean = 0;     // steps since the last bad one, or the last doubling
    int patience = 0;  // bad steps that are still let pass
    bool operator==(const State&) const = default;
  };
  explicit LossScaler(const ScalerConfig& config) : config_(config) {
    state_ = {config.constant.value_or(config.initial), 0, config.hysteresis};
  }
  double scale() const { return state_.scale; }

  /// Told after every step whether all gradients were finite. Patience is filled up again by a full clean
  /// window only.
  void update(bool finite) {
    if (config_.constant) return;
    if (!finite) {
      state_.clean = 0;
      if (--state_.patience <= 0) state_.scale = std::max(state_.scale / 2, config_.least);
    } else if (++state_.clean == config_.window) {
      state_.clean = 0;
      state_.patience = config_.hysteresis;
      state_.scale *= 2;
    }
  }
  const State& state() const { return state_; }
  void restore(const State& state) { state_ = state; }

 private:
  ScalerConfig config_;
  State state_;
};

}  // namespace weft
