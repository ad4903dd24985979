#include "weft/train/trainer.h"

#include <fmt/format.h>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/model/count.h"
#include "weft/tensor/named.h"
#include "weft/train/settings.h"
#include "weft/train/stages.h"

namespace weft {
namespace {

/// None where nothing is trained and nothing is there to train on.
std::unique_ptr<Feed> training_feed(const TrainConfig& config, const RunData& data, const Replica& replica) {
  const auto train = data.sets[data::Split::train];
  if (!train && !config.eval.skip_train)
    fail(Kind::usage, "train: the data hold no training documents; see {data.split}");
  if (!train) return nullptr;
  return std::make_unique<Feed>(train, training_sampler(config.data, train->size()),
                                place_of(replica, config.data), 0);
}

std::string where_it_lies(const FileMemory& file, const OffloadConfig& how) {
  const std::string in_file =
      how.directory.empty()
          ? std::string()
          : fmt::format("{} in a file in {}, ", human_bytes(file.bytes_of_file()), how.directory);
  return fmt::format("{} of each rank: {}{} in the host's memory, which has room for {} windows",
                     how.weights ? "weights and optimizer states" : "optimizer states", in_file,
                     human_bytes(file.bytes_of_memory()), how.buffers);
}

}  // namespace

Trainer::Trainer(const TrainConfig& config, const RunData& data, const Lent& lent)
    : loop_{.exit = config.exit,
            .evaluate_every = config.eval.interval,
            .evaluate_from = config.eval.from,
            .save_every = config.checkpoint.interval,
            .trains = !config.eval.skip_train,
            .writes_a_sample = !config.run.sample_prompt.empty()},
      lent_(lent),
      progress_(progress_of(config, data.length)),
      replica_(replica_config(config), {lent.device, lent.mesh}),
      stepper_(step_settings(config, lent.mesh), training_feed(config, data, replica_), replica_, progress_,
               lent.log),
      evaluator_(evaluation_settings(config, lent.mesh,
                                     [this](std::exception_ptr unreadable) {
                                       return asked_of_any_rank(std::move(unreadable));
                                     }),
                 data.sets, lent, replica_, progress_),
      teller_(teller_settings(config, replica_.losses()), lent, progress_),
      verifier_({data.sets[data::Split::train], config.data}, lent, replica_, stepper_),
      checkpoints_(config, lent,
                   {.replica = replica_, .progress = progress_, .stepper = stepper_, .verifier = verifier_}),
      pulse_(lent.mesh.world().pulse() != nullptr ? *lent.mesh.world().pulse() : unseen_),
      window_(config.profile, lent.device, lent.mesh.world().rank()) {
  pulse_.begin(lent.mesh.world().rank(), lent.mesh.place(Axis::pp));
  if (lent.outlet)
    lent.log.info(fmt::format("{} parameters, {} {} of {} {}",
                              human_count(double(count_parameters(config.model).total())), progress_.steps,
                              progress_.steps == 1 ? "step" : "steps", config.batch.global,
                              config.batch.global == 1 ? "sample" : "samples"));
  if (const std::string lengths = progress_.curriculum.told(); lent.outlet && !lengths.empty())
    lent.log.info(lengths);
  for (const std::string& note :
       {exact_context(config.model, config.parallel), exact_experts(config.model, config.batch),
        exact_pieces(config.model, config.batch, config.curriculum)})
    if (lent.outlet && !note.empty()) lent.log.info(note);
  if (const Shelf* shelf = replica_.weights().shelf(); lent.outlet && shelf != nullptr)
    lent.log.info(where_it_lies(shelf->file(), config.optimizer.offload));
  checkpoints_.open();
}

// Clocks, signals and what is read differ from rank to rank, so the ranks agree: the greatest reason of any
// is that of all.
std::optional<Ending> Trainer::asked_of_any_rank(std::exception_ptr unreadable) {
  if (unreadable) unreadable_ = std::move(unreadable);
  const bool asked = lent_.asked_to_stop && lent_.asked_to_stop->load();
  const bool late = loop_.exit.minutes > 0 && since_start_.seconds() > 60 * loop_.exit.minutes;
  double reason = asked ? 3 : late ? 2 : unreadable_ ? 1 : 0;
  lent_.mesh.world().agree({&reason, 1}, Reduce::max);
  if (reason == 3) return Ending::asked;
  if (reason == 2) return Ending::out_of_time;
  if (reason == 1) return Ending::unreadable;
  return std::nullopt;
}

// The next step's samples are looked at before it begins: what was learned is saved where one cannot be read.
std::optional<Ending> Trainer::must_stop(std::int64_t step) {
  const bool goes_on = step < progress_.steps;
  if (const auto asked = asked_of_any_rank(goes_on ? stepper_.trouble_ahead(&teller_.timers()) : nullptr))
    return asked;
  if (loop_.exit.interval > 0 && step % loop_.exit.interval == 0 && goes_on) return Ending::at_interval;
  return std::nullopt;
}

StepReport Trainer::take(std::int64_t step) {
  const Named named(replica_.device(), "step", step);
  try {
    return verifier_.step(step, &teller_.timers(), checkpoints_.wants_record_of(step));
  } catch (const Refused& refused) {
    pulse_.enter(Section::saving);
    checkpoints_.refused(refused, step);
    throw;
  }
}

// Who fails ends the others, so all wait until what is saved stands; then those who can read wait for that.
Ending Trainer::ended(Ending how) {
  const Ending after_all = checkpoints_.ended(how);
  if (how != Ending::unreadable) return after_all;
  lent_.mesh.world().barrier();
  if (unreadable_) std::rethrow_exception(unreadable_);
  lent_.mesh.world().barrier();
  return after_all;
}

Ending Trainer::run() {
  if (const std::string why = window_.begin(progress_.first_step, progress_.steps); !why.empty())
    lent_.log.warning(why);
  teller_.begin();
  const auto due = [](std::int64_t step, std::int64_t every) { return every > 0 && step % every == 0; };
  for (std::int64_t step = progress_.first_step; step <= progress_.steps && loop_.trains; ++step) {
    pulse_.begin_step(step);
    window_.before(step);
    if (lent_.before_step) lent_.before_step(step, replica_);
    const StepReport report = take(step);
    window_.after(step);
    pulse_.end_step();
    teller_.tell(step, report, stepper_.consumed());
    if (step == progress_.first_step) teller_.tell_memory_of_ranks();
    stepper_.compare_copies(step);
    if (due(step, loop_.evaluate_every) && step >= loop_.evaluate_from) {
      pulse_.enter(Section::evaluating);
      (void)evaluator_.evaluate({step, stepper_.consumed()}, data::Split::valid,
                                fmt::format("iteration {}", step));
    }
    const auto ending = must_stop(step);
    if (ending || step == progress_.steps) replica_.finish_update();
    if (ending || step == progress_.steps || due(step, loop_.save_every)) pulse_.enter(Section::saving);
    checkpoints_.save_if_due(step, ending || step == progress_.steps);
    Saver* const saver = checkpoints_.wants_record_of(step + 1);
    if (ending && ending != Ending::unreadable && saver && step < progress_.steps && !loop_.writes_a_sample)
      verifier_.record_one_more(step + 1, *saver);
    if (ending) return ended(*ending);
  }
  pulse_.enter(Section::ending);
  const std::int64_t last = loop_.trains ? progress_.steps : progress_.first_step - 1;
  const Evaluator::When end{last, stepper_.consumed()};
  const std::string at = fmt::format("iteration {} on ", last);
  const bool whole = evaluator_.evaluate(end, data::Split::valid, at + "validation set") &&
                     evaluator_.evaluate(end, data::Split::test, at + "test set");
  return ended(whole ? Ending::finished : asked_of_any_rank(nullptr).value_or(Ending::asked));
}

}  // namespace weft
