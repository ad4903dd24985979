// What is done about results that cannot be: looks where they come from, does the step again,
// compares ranks.
#include <fmt/format.h>

#include "weft/base/error.h"
#include "weft/train/copies.h"
#include "weft/train/stepper.h"

namespace weft {

StepReport Stepper::not_finite(std::int64_t step, const StepReport& report, std::span<const Batch> batches) {
  replica_.must_have_finite_weights(step);
  if (settings_.scale_moves) return report;
  if (settings_.guard.faults == FaultCheck::rerun)
    if (const auto again = done_again(step, report, batches)) return *again;
  const std::string where = fault_is_injected(step, Trial::second)
                                ? "injected by {guard.inject_every}"
                                : replica_.find_not_finite(batches, order_of(step));
  const std::string sentence =
      fmt::format("step {}: {} is not finite, {}; the weights are as they were before", step,
                  report.loss_finite ? "the gradient" : "the loss", where);
  if (settings_.guard.non_finite == NonFinite::stop) fail(Kind::data, sentence);
  log_.warning(sentence + "; the step is skipped");
  return report;
}

// The weights are as they were, so the same step can be done again; a step of weft always gives the same
// bits.
std::optional<StepReport> Stepper::done_again(std::int64_t step, const StepReport& report,
                                              std::span<const Batch> batches) {
  StepOrder order = order_of(step);
  order.fault = fault_is_injected(step, Trial::second);
  const StepReport again = replica_.step(batches, order);
  if (!again.applied) return std::nullopt;
  if (settings_.tells)
    log_.warning(fmt::format(
        "step {}: {} was not finite and came out as {:.9g} when the step was done again: a passing "
        "fault of a machine; the second result counts",
        step, report.loss_finite ? "the gradient's norm" : "the loss",
        report.loss_finite ? again.grad_norm : again.loss()));
  return again;
}

bool Stepper::fault_is_injected(std::int64_t step, Trial trial) const {
  const GuardConfig& guard = settings_.guard;
  if (guard.inject_every == 0 || step % guard.inject_every != 0) return false;
  return trial == Trial::first || guard.injected == InjectedFault::lasting;
}

void Stepper::compare_copies(std::int64_t step) const {
  const std::int64_t interval = settings_.guard.replica_check_interval;
  if (interval == 0 || step % interval != 0) return;
  if (const std::string differ = copies_that_differ(replica_); !differ.empty())
    fail(Kind::device, "step ", step, ": ", differ,
         "; a fault of memory or of transport: go on from a checkpoint before it");
}

}  // namespace weft
