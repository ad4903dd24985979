// How long a device was at the parts of steps, under Megatron's names.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "weft/pipe/runner.h"
#include "weft/tensor/named.h"

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
  optimizer,  // the last three together: nobody adds to it
};
inline constexpr int parts_of_step = 14;
std::string_view name(StepPart part);

/// This rank's seconds since they were last forgotten, of what its device has done by now. Level 1 knows the
/// stages of a step, 2 also what the schedule does in forward and backward; 0 looks at no clock.
class StepTimers final : public pipe::Timekeeper {
 public:
  explicit StepTimers(int level) : level_(level) {}
  int level() const { return level_; }
  void took(const pipe::Action& action, Stretch stretch) override;
  void add(StepPart part, Stretch stretch) { spent_[std::size_t(part)].add(std::move(stretch)); }
  /// All of them. What several make up together is their sum.
  std::array<double, parts_of_step> seconds();
  double of(StepPart part) { return seconds()[std::size_t(part)]; }
  void forget();

 private:
  int level_;
  std::array<Spent, parts_of_step> spent_;
};

/// One part after the other, each by its name; without timers nobody is told how long they took.
class Laps {
 public:
  Laps(StepTimers* timers, Device& device)
      : timers_(timers && timers->level() > 0 ? timers : nullptr), device_(device) {
    skip();
  }
  template <class Work>
  void take(StepPart part, const Work& work) {
    const Named named(device_, name(part));
    work();
    end(part);
  }
  void end(StepPart part) {
    if (!timers_) return;
    timers_->add(part, {std::move(*since_), device_.instant()});
    skip();
  }
  /// What was done since the last end has no name.
  void skip() {
    if (timers_) since_ = device_.instant();
  }

 private:
  StepTimers* timers_;
  Device& device_;
  std::optional<Instant> since_;
};

}  // namespace weft
