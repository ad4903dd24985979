// A step of weft gives the same bits each time: one that does not was computed by a machine that errs.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "weft/base/error.h"
#include "weft/train/lent.h"
#include "weft/train/stepper.h"

namespace weft {
namespace {

std::string numbers_of(const StepReport& report) {
  return fmt::format("loss {:.17g} and gradient norm {:.17g}", report.loss(), report.grad_norm);
}

}  // namespace

bool Stepper::is_checked(std::int64_t step) const {
  return settings_.guard.rerun_interval > 0 && step % settings_.guard.rerun_interval == 0;
}

/// A made-up fault changes the first trial, or each of them otherwise.
StepReport Stepper::look(const StepOrder& order, std::span<const Batch> batches, int trial) {
  StepOrder only = order;
  only.only_look = true;
  StepReport report = replica_.step(batches, only);
  const bool wrong = fault_is_injected(order.step, trial == 0 ? Trial::first : Trial::second);
  if (wrong) report.losses[0] += (trial + 1) * 1e-3;
  return report;
}

// All ranks see the same losses and norms, so they decide alike.
StepReport Stepper::checked(StepOrder order, std::span<const Batch> batches) {
  const StepReport first = look(order, batches, 0);
  order.expected = &first;
  const StepReport second = replica_.step(batches, order);
  if (second.as_expected) return second;
  const StepReport third = look(order, batches, 1);
  order.expected = &third;
  const StepReport last = replica_.step(batches, order);
  if (!last.as_expected)
    throw MachineFault(
        Kind::device,
        fmt::format("step {}: computed four times, and no two in a row agree: {}; {}; {}; {}: a lasting "
                    "fault of a machine; go on without it",
                    order.step, numbers_of(first), numbers_of(second), numbers_of(third), numbers_of(last)),
        Place{});
  if (settings_.tells)
    log_.warning(
        fmt::format("step {}: came out with {} first and then twice with {}: a passing fault of a machine; "
                    "the second result counts",
                    order.step, numbers_of(first), numbers_of(last)));
  return last;
}

}  // namespace weft
