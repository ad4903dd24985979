// One training step after the other: its samples, its rates, and what becomes of one that was not applied.
#pragma once

#include <exception>
#include <memory>
#include <optional>

#include "weft/base/log.h"
#include "weft/train/feed.h"
#include "weft/train/progress.h"
#include "weft/train/replica.h"
#include "weft/train/spikes.h"
#include "weft/train/suspicion.h"

namespace weft {

/// What of a run's settings is the same for all steps.
struct StepSettings {
  StepOrder order;          // but for rates and number
  data::SampleTurn turn;    // but for the batch
  bool one_by_one = false;  // a pass takes one row (exact mode), so pieces of a sample are passes each
  double width_factor = 1;  // of the rate of weights whose pace follows the model's width
  GuardConfig guard;
  bool tells = false;        // what one rank says for all
  bool scale_moves = false;  // dynamic loss scaling lives on steps that are not applied
};

class Stepper {
 public:
  /// Without a feed nothing is trained.
  Stepper(StepSettings settings, std::unique_ptr<Feed> feed, Replica& replica, Progress& progress,
          const Log& log);
  enum class NotFinite : std::uint8_t { looked_for, passed_over };
  StepReport step(std::int64_t step, StepTimers* timers, NotFinite trouble = NotFinite::looked_for);

  /// Why the next step's samples cannot be read; null: they can. Waits until they are.
  std::exception_ptr trouble_ahead(StepTimers* timers);

  data::SampleTurn turn_at(std::int64_t consumed) const;
  StepOrder order_of(std::int64_t step) const;
  data::Excerpt excerpt_at(std::int64_t step) const { return progress_.curriculum.excerpt_at(step); }
  /// Whether it is left out on purpose.
  bool skips(std::int64_t step) const;
  std::int64_t consumed() const { return feed_ ? feed_->consumed() : 0; }
  void seek(std::int64_t consumed);
  /// Fails where ranks that hold the same weights do not, as often as settings ask.
  void compare_copies(std::int64_t step) const;
  /// What the step that is done first is to be compared with.
  void suspect(Suspected suspected) { suspected_ = std::move(suspected); }
  /// To where we stood before a step that was refused.
  void put_back();

 private:
  StepReport not_finite(std::int64_t step, const StepReport& report, std::span<const Batch> batches);
  std::optional<StepReport> done_again(std::int64_t step, const StepReport& report,
                                       std::span<const Batch> batches);
  [[noreturn]] void refuse(std::int64_t step, const StepReport& report, const NotFiniteAt& found) const;
  /// Throws what a result that was refused before is known to be now.
  void judge(const StepOrder& order, std::span<const Batch> batches);
  /// Computed twice before it counts, and a third time where that differs.
  StepReport checked(const StepOrder& order, std::span<const Batch> batches);
  StepReport confirmed(StepOrder order, const StepReport& first, std::span<const Batch> batches);
  StepReport look(const StepOrder& order, std::span<const Batch> batches, int trial);
  /// Computed twice, and how far that differs is reported.
  StepReport measured(const StepOrder& order, std::span<const Batch> batches);
  bool is_checked(std::int64_t step) const;
  /// A made-up fault is then a wrong number, and else one that is not finite.
  bool compares(std::int64_t step) const { return is_checked(step) || reports(); }
  bool reports() const { return settings_.guard.faults == FaultCheck::report; }
  bool judges() const { return settings_.guard.faults == FaultCheck::judge; }
  enum class Trial : std::uint8_t { first, second };
  bool fault_is_injected(std::int64_t step, Trial trial) const;

  StepSettings settings_;
  std::unique_ptr<Feed> feed_;
  Replica& replica_;
  Progress& progress_;
  const Log& log_;
  SpikeWatch spikes_;
  std::optional<Suspected> suspected_;
  std::int64_t consumed_before_ = 0, tokens_before_ = 0, batch_before_ = 0;  // the step that is being done
};

}  // namespace weft
