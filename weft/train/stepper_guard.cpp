// What is done about results that cannot be: looks where they come from, does the step again,
// compares ranks.
#include <fmt/format.h>

#include <cmath>

#include "weft/base/error.h"
#include "weft/train/copies.h"
#include "weft/train/stepper.h"

namespace weft {

namespace {

const char* what_is_not_finite(const StepReport& report) {
  if (!report.loss_finite) return "the loss";
  return std::isfinite(report.grad_norm) ? "a score of attention" : "the gradient";
}

}  // namespace

StepReport Stepper::not_finite(std::int64_t step, const StepReport& report, std::span<const Batch> batches) {
  replica_.must_have_finite_weights(step);
  if (settings_.scale_moves) return report;
  if (settings_.guard.faults == FaultCheck::rerun || judges())
    if (const auto again = done_again(step, report, batches)) return *again;
  const NotFiniteAt found = fault_is_injected(step, Trial::second)
                                ? NotFiniteAt{"injected by {guard.inject_every}", 0}
                                : replica_.find_not_finite(batches, order_of(step));
  const bool stops = settings_.guard.non_finite == NonFinite::stop;
  if (stops && judges()) refuse(step, report, found);
  const std::string sentence =
      fmt::format("step {}: {} is not finite, {}; the weights are as they were before", step,
                  what_is_not_finite(report), found.where);
  if (stops) fail(Kind::data, sentence);
  log_.warning(sentence + "; the step is skipped");
  return report;
}

// The weights are as they were, so the same step can be done again; a step of weft always gives the same
// bits.
std::optional<StepReport> Stepper::done_again(std::int64_t step, const StepReport& report,
                                              std::span<const Batch> batches) {
  StepOrder order = order_of(step);
  order.fault = fault_is_injected(step, Trial::second);
  order.only_look = judges() && settings_.guard.non_finite == NonFinite::stop;
  const StepReport again = replica_.step(batches, order);
  if (!again.loss_finite || !std::isfinite(again.grad_norm) || !again.scores_finite) return std::nullopt;
  const std::string sentence = fmt::format(
      "step {}: {} was not finite and came out as {:.9g} when the step was done again: a passing fault of a "
      "machine",
      step, report.loss_finite ? "the gradient's norm" : "the loss",
      report.loss_finite ? again.grad_norm : again.loss());
  if (order.only_look)
    throw Refused(Refused::Known::machine_erred, sentence + "; the weights are as they were before");
  if (settings_.tells) log_.warning(sentence + "; the second result counts");
  return again;
}

/// What came out twice alike is the machine's fault or the numbers' own, and this machine cannot tell.
void Stepper::refuse(std::int64_t step, const StepReport& report, const NotFiniteAt& found) const {
  Suspicion suspicion{.step = step,
                      .numbers = numbers_of(report),
                      .machines = {},
                      .rank = found.rank,
                      .where = found.where,
                      .made_up = fault_is_injected(step, Trial::second),
                      .machine_erred = settings_.guard.injected == InjectedFault::lasting};
  throw Refused(
      Refused::Known::not_yet,
      fmt::format(
          "step {}: {} is not finite, {}{}, and so it is again when the step is done again; go on "
          "from the checkpoint before it on another machine, to tell a lasting fault of this one from "
          "the numbers' own",
          step, what_is_not_finite(report), found.where,
          found.rank >= 0 ? fmt::format(", on rank {}", found.rank) : ""),
      std::move(suspicion));
}

bool Stepper::fault_is_injected(std::int64_t step, Trial trial) const {
  const GuardConfig& guard = settings_.guard;
  if (guard.inject_every == 0 || step % guard.inject_every != 0) return false;
  return trial == Trial::first || guard.injected != InjectedFault::passing;
}

void Stepper::compare_copies(std::int64_t step) const {
  const std::int64_t interval = settings_.guard.replica_check_interval;
  if (interval == 0 || step % interval != 0) return;
  if (const std::string differ = copies_that_differ(replica_); !differ.empty())
    fail(Kind::device, "step ", step, ": ", differ,
         "; a fault of memory or of transport: go on from a checkpoint before it");
}

}  // namespace weft
