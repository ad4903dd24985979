// The trainer's side of --verify-resume: the step after a save is written down, and done again after a load.
#include <fmt/format.h>

#include "weft/base/error.h"
#include "weft/checkpoint/agree.h"
#include "weft/train/replay.h"
#include "weft/train/resume_settings.h"
#include "weft/train/trainer.h"

namespace weft {
namespace {

/// Between layouts, sums are rounded in another order.
constexpr double rounding_of_floats = 2e-4, rounding_of_halves = 1e-2;

/// The record beside a checkpoint as the first rank reads it, or `why` there is none.
std::string told_by_first(Communicator& world, const std::filesystem::path& from, std::string& why) {
  const std::string said = checkpoint::agree(world, [&]() -> std::string {
    if (world.rank() != 0) return {};
    try {
      return "=" + to_json(read_replay(from), Hash{});
    } catch (const Error& error) {
      return error.what();
    }
  })[0];
  if (said.starts_with('=')) return said.substr(1);
  why = said;
  return {};
}

}  // namespace

double Trainer::rounding_between(const RunFacts& facts) const {
  const TrainConfig& was = facts.configuration;
  const bool exact = was.model.exact && config_.model.exact && was.run.device == config_.run.device;
  if (exact || !rounds_otherwise(facts, config_)) return 0;
  return config_.model.precision == Precision::f32 ? rounding_of_floats : rounding_of_halves;
}

Replay Trainer::about_to_do(std::int64_t step) const {
  const StepOrder order = order_of(step);
  return {.step = step,
          .first_sample = feed_->consumed(),
          .batch = turn_at(feed_->consumed()).global_batch,
          .rate = order.rate,
          .ends_rate = order.ends_rate,
          .decay = order.decay,
          .skipped = step_is_skipped(step),
          .tensors = {}};
}

void Trainer::did(Replay& replay, const StepReport& report) {
  replay.applied = report.applied;
  if (report.applied) {
    replay.loss = report.loss;
    replay.grad_norm = report.grad_norm;
  }
  replay.tensors = marks_of(replica_.weights(), replica_.optimizer(), lent_.mesh.world());
}

std::string Trainer::not_to_be_replayed(const RunFacts& facts, const std::string& from) {
  if (config_.eval.skip_train || first_step_ > steps_) return "no step follows";
  if (!config_.checkpoint.load_optimizer) return "optimizer states were not loaded";
  if (facts.run.seed != config_.run.seed) return "its seed is another one, or was not saved";
  if (std::string differ = settings_of_another_step(facts, config_); !differ.empty()) return differ;
  const bool regrouped =
      facts.layout.dp != config_.parallel.dp || facts.configuration.batch.micro != config_.batch.micro;
  if (regrouped && config_.data.mask_eod_loss && !config_.batch.per_token_loss)
    return "micro batches hold other samples, and each weighs its own tokens";
  std::string why;
  const std::string record = told_by_first(lent_.mesh.world(), from, why);
  if (record.empty()) return why;
  expected_ = Expected{replay_from_json(record, Hash{}, from), rounding_between(facts), from};
  return another_step(expected_->saved, about_to_do(first_step_));
}

void Trainer::expect_replay(const RunFacts& facts, const std::string& from) {
  const std::string why = not_to_be_replayed(facts, from);
  if (why.empty()) return;
  expected_.reset();
  verify(facts, from);
  if (lent_.mesh.world().rank() == 0)
    lent_.log.info(fmt::format("--verify-resume: step {} was not compared, moments were not looked at: {}",
                               first_step_, why));
}

StepReport Trainer::watched_step(std::int64_t step) {
  const bool records = config_.checkpoint.verify && saver_ && step > first_step_ && saved_at_ == step - 1;
  if (!records && !expected_) return one_step(step);
  Replay now = about_to_do(step);
  const StepReport report = one_step(step);
  did(now, report);
  if (expected_) compare_replay(now);
  if (records) saver_->record(std::move(now));
  return report;
}

void Trainer::compare_replay(const Replay& now) {
  const auto& [saved, rounding, from] = *expected_;
  if (const std::string differ = difference(saved, now, rounding); !differ.empty())
    fail(Kind::data, "--verify-resume: ", from, ": step ", now.step, " does not come out as it did: ", differ,
         "; nothing was saved since it was loaded");
  if (lent_.mesh.world().rank() == 0)
    lent_.log.info(
        fmt::format("verified: step {} gives its loss {:.9g}, its gradient norm and all {} weights "
                    "and moments again, {}",
                    now.step, now.loss, now.tensors.size(),
                    rounding == 0 ? "every bit equal" : "equal to rounding under another layout"));
  expected_.reset();
}

// A run that leaves early has no use for its weights any more, once they are saved: it takes one step with
// them that nobody sees.
void Trainer::record_one_more(std::int64_t step) {
  const bool wanted = config_.checkpoint.verify && saver_ && saved_at_ == step - 1;
  if (!wanted || !config_.run.sample_prompt.empty()) return;
  saver_->settle();
  if (saver_->failed()) return;
  Replay next = about_to_do(step);
  did(next, one_step(step, NotFinite::passed_over));
  saver_->record(std::move(next));
}

}  // namespace weft
