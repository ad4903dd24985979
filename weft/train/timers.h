// How long the parts of steps took, under Megatron's names.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "weft/base/clock.h"
#include "weft/pipe/runner.h"

namespace weft {

/// In the order of the lines that tell of them.
enum class StepPart : std::uint8_t {
  forward_backward,
  batch_generator,
  forward_compute,
  backward_compute,
  forward_recv,
  forward_send,
  backward_recv,
  backward_send,
  embedding_grads,
  all_grads_sync,
  clip,
  count_zeros,
  inner_step,
  optimizer,  // the last three together
};
inline constexpr int parts_of_step = 14;
std::string_view name(StepPart part);

/// This rank's seconds since they were last forgotten. Level 1 knows the stages of a step, 2 also what the
/// schedule does in forward and backward; 0 looks at no clock.
class StepTimers final : public pipe::Timekeeper {
 public:
  explicit StepTimers(int level) : level_(level) {}
  int level() const { return level_; }
  void took(const pipe::Action& action, double seconds) override;
  void add(StepPart part, double seconds) { seconds_[std::size_t(part)] += seconds; }
  double of(StepPart part) const { return seconds_[std::size_t(part)]; }
  std::span<const double> seconds() const { return seconds_; }
  void forget() { seconds_.fill(0); }

 private:
  int level_;
  std::array<double, parts_of_step> seconds_{};
};

/// Ends one part after the other; without timers it does nothing.
class Laps {
 public:
  explicit Laps(StepTimers* timers) : timers_(timers && timers->level() > 0 ? timers : nullptr) {}
  void end(StepPart part) {
    if (timers_) timers_->add(part, watch_.restart());
  }
  /// What was done since the last end has no name.
  void skip() {
    if (timers_) watch_.restart();
  }

 private:
  StepTimers* timers_;
  Stopwatch watch_;
};

}  // namespace weft
