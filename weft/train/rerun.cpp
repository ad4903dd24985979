// A step of weft gives the same bits each time: one that does not was computed by a machine that errs.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "weft/base/error.h"
#include "weft/train/stepper.h"

namespace weft {
namespace {

std::string words_of(const StepReport& report) {
  return fmt::format("loss {:.17g} and gradient norm {:.17g}", report.loss(), report.grad_norm);
}

}  // namespace

bool Stepper::is_checked(std::int64_t step) const {
  return settings_.guard.rerun_interval > 0 && step % settings_.guard.rerun_interval == 0;
}

/// A made-up fault changes the first trial, or each of them otherwise. Where it is measured how far two
/// differ, one that is there again makes no difference.
StepReport Stepper::look(const StepOrder& order, std::span<const Batch> batches, int trial) {
  StepOrder only = order;
  only.only_look = true;
  StepReport report = replica_.step(batches, only);
  const bool wrong = fault_is_injected(order.step, trial == 0 ? Trial::first : Trial::second) &&
                     (is_checked(order.step) || (reports() && !fault_is_injected(order.step, Trial::second)));
  if (wrong) report.losses[0] += (trial + 1) * 1e-3;
  return report;
}

// All ranks see the same losses and norms, so they decide alike.
StepReport Stepper::checked(const StepOrder& order, std::span<const Batch> batches) {
  return confirmed(order, look(order, batches, 0), batches);
}

StepReport Stepper::measured(const StepOrder& order, std::span<const Batch> batches) {
  const StepReport first = look(order, batches, 0);
  StepReport second = replica_.step(batches, order);
  RerunDifferences& differs = second.differs.emplace();
  differs.losses = ByLoss<double>(first.losses.size());
  for (std::size_t i = 0; i < first.losses.size(); ++i)
    differs.losses[i] = relative_difference(first.losses[i], second.losses[i]);
  differs.grad_norm = relative_difference(first.grad_norm, second.grad_norm);
  return second;
}

StepReport Stepper::confirmed(StepOrder order, const StepReport& first, std::span<const Batch> batches) {
  order.most_loss = std::numeric_limits<double>::infinity();
  order.expected = &first;
  const StepReport second = replica_.step(batches, order);
  if (first.too_large && second.as_expected && settings_.tells)
    log_.warning(fmt::format(
        "step {}: its loss {:.9g} is far above the first ones, and came out as before when the step "
        "was done again: no passing fault of a machine",
        order.step, second.loss()));
  if (second.as_expected) return second;
  const StepReport third = look(order, batches, 1);
  order.expected = &third;
  const StepReport last = replica_.step(batches, order);
  if (!last.as_expected)
    throw Refused(
        Refused::Known::machine_erred,
        fmt::format("step {}: computed four times, and no two in a row agree: {}; {}; {}; {}: a lasting "
                    "fault of a machine; go on without it",
                    order.step, words_of(first), words_of(second), words_of(third), words_of(last)));
  if (settings_.tells)
    log_.warning(
        fmt::format("step {}: came out with {} first and then twice with {}: a passing fault of a machine; "
                    "the second result counts",
                    order.step, words_of(first), words_of(last)));
  return last;
}

// Ranks know the same of what was suspected, so they throw alike here too.
void Stepper::judge(const StepOrder& order, std::span<const Batch> batches) {
  const Suspected was = *std::exchange(suspected_, std::nullopt);
  const Suspicion& then = was.what;
  if (!judges() || then.step != order.step) return;
  StepOrder look_only = order;
  look_only.only_look = true;
  const StepReport now = replica_.step(batches, look_only);
  const bool otherwise =
      then.made_up ? then.machine_erred && !was.same_machine : !alike(then.numbers, numbers_of(now));
  const std::string machine = then.rank >= 0 && std::size_t(then.rank) < then.machines.size()
                                  ? then.machines[std::size_t(then.rank)]
                                  : "the machines of then";
  const std::string begin = fmt::format("step {}: its loss or gradient was refused on {}, {}, and ",
                                        order.step, machine, then.where);
  if (was.same_machine && !otherwise)
    throw Refused(
        Refused::Known::not_yet,
        begin +
            "is the same there again; go on from this checkpoint on another machine, to tell a lasting "
            "fault of this one from the numbers' own");
  if (was.same_machine)
    throw Refused(
        Refused::Known::machine_erred,
        begin + fmt::format("comes out with {} there now: a passing fault of that machine", words_of(now)));
  if (otherwise)
    throw Refused(
        Refused::Known::machine_erred,
        begin + fmt::format("comes out with {} here: a lasting fault of that machine; go on without it",
                            words_of(now)));
  throw Refused(Refused::Known::numbers_are_so,
                begin +
                    "comes out the same on another machine: no machine erred; look at the data, {rate.peak}, "
                    "{optimizer.clip} and {model.init.std}");
}

}  // namespace weft
