// A run from its settings: which parts it has, and the loop that asks them in turn.
#include "weft/train/trainer.h"

#include <fmt/format.h>

#include <array>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/model/count.h"
#include "weft/tensor/host.h"
#include "weft/train/stages.h"

namespace weft {
namespace {

/// None where nothing is trained and nothing is there to train on.
std::unique_ptr<Feed> training_feed(const TrainConfig& config, const RunData& data, const Replica& replica) {
  const auto train = data.sets[data::Split::train];
  if (!train && !config.eval.skip_train)
    fail(Kind::usage, "train: the data hold no training documents; see {data.split}");
  if (!train) return nullptr;
  return std::make_unique<Feed>(train, run_sampler(config.data, train->size()), place_of(replica), 0);
}

std::vector<std::string> names_of(std::span<const NamedLoss> losses) {
  std::vector<std::string> names;
  for (const NamedLoss& loss : losses) names.push_back(loss.name);
  return names;
}

TellerSettings teller_settings(const TrainConfig& config, std::span<const NamedLoss> losses) {
  return {.log = config.log,
          .spiky_loss = config.guard.spiky_loss,
          .flops_of_sample = training_flops(config.model, config.model.sequence),
          .losses = names_of(losses)};
}

}  // namespace

Trainer::Trainer(const TrainConfig& config, const RunData& data, const Lent& lent)
    : config_(config),
      lent_(lent),
      progress_(progress_of(config)),
      replica_(replica_config(config), {lent.device, lent.mesh}),
      stepper_(step_settings(config, lent.mesh), training_feed(config, data, replica_), replica_, progress_,
               lent.log),
      evaluator_(evaluation_settings(config, lent.mesh, [this] { return asked_of_any_rank().has_value(); }),
                 data.sets, lent, replica_, progress_),
      teller_(teller_settings(config, replica_.losses()), lent, progress_),
      verifier_(config, data.sets[data::Split::train], lent, replica_, stepper_),
      checkpoints_(config, lent,
                   {.replica = replica_, .progress = progress_, .stepper = stepper_, .verifier = verifier_}),
      pulse_(lent.mesh.world().pulse() != nullptr ? *lent.mesh.world().pulse() : unseen_) {
  pulse_.begin(lent.mesh.world().rank(), lent.mesh.place(Axis::pp));
  if (lent.outlet)
    lent.log.info(fmt::format("{} parameters, {} steps of {} samples",
                              human_count(double(count_parameters(config.model).total())), progress_.steps,
                              config.batch.global));
  const std::string note = exact_context(config.model, config.parallel);
  if (lent.outlet && !note.empty()) lent.log.info(note);
  checkpoints_.open();
}

// Clocks and signals differ from rank to rank, so the ranks agree: the greatest reason of any is that of all.
std::optional<Ending> Trainer::asked_of_any_rank() const {
  const bool asked = lent_.asked_to_stop && lent_.asked_to_stop->load();
  const bool late = config_.exit.minutes > 0 && since_start_.seconds() > 60 * config_.exit.minutes;
  const std::array<std::int32_t, 1> mine{asked ? 2 : late ? 1 : 0};
  const Tensor reason = from_host<std::int32_t>(lent_.device, {1}, mine);
  lent_.mesh.world().all_reduce(reason, Reduce::max).wait();
  const int agreed = int(number(reason));
  if (agreed == 2) return Ending::asked;
  if (agreed == 1) return Ending::out_of_time;
  return std::nullopt;
}

std::optional<Ending> Trainer::must_stop(std::int64_t step) const {
  if (const auto asked = asked_of_any_rank()) return asked;
  if (config_.exit.interval > 0 && step % config_.exit.interval == 0 && step < progress_.steps)
    return Ending::at_interval;
  return std::nullopt;
}

Ending Trainer::run() {
  teller_.begin();
  for (std::int64_t step = progress_.first_step; step <= progress_.steps && !config_.eval.skip_train;
       ++step) {
    pulse_.begin_step(step);
    if (lent_.before_step) lent_.before_step(step, replica_);
    const StepReport report = verifier_.step(step, &teller_.timers(), checkpoints_.wants_record_of(step));
    pulse_.end_step();
    teller_.tell(step, report, stepper_.consumed());
    if (step == progress_.first_step) teller_.tell_memory_of_ranks();
    stepper_.compare_copies(step);
    if (config_.eval.interval > 0 && step % config_.eval.interval == 0) {
      pulse_.enter(Section::evaluating);
      (void)evaluator_.evaluate({step, stepper_.consumed()}, data::Split::valid,
                                fmt::format("iteration {}", step));
    }
    const auto ending = must_stop(step);
    const std::int64_t interval = config_.checkpoint.interval;
    if (ending || step == progress_.steps || (interval > 0 && step % interval == 0))
      pulse_.enter(Section::saving);
    checkpoints_.save_if_due(step, ending || step == progress_.steps);
    Saver* const saver = checkpoints_.wants_record_of(step + 1);
    if (ending && saver && step < progress_.steps && config_.run.sample_prompt.empty())
      verifier_.record_one_more(step + 1, *saver);
    if (ending) return checkpoints_.ended(*ending);
  }
  pulse_.enter(Section::ending);
  const Evaluator::When end{progress_.steps, stepper_.consumed()};
  const std::string at = fmt::format("iteration {} on ", progress_.steps);
  const bool whole = evaluator_.evaluate(end, data::Split::valid, at + "validation set") &&
                     evaluator_.evaluate(end, data::Split::test, at + "test set");
  return checkpoints_.ended(whole ? Ending::finished : asked_of_any_rank().value_or(Ending::asked));
}

}  // namespace weft
