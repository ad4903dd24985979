// A record is compared bit by bit, or to rounding where sums are added in another order.
#include "weft/train/verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/checkpoint/agree.h"
#include "weft/optim/norms.h"

namespace weft {
namespace {

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

Verifier::Verifier(Trained train, const Lent& lent, Replica& replica, Stepper& stepper)
    : train_(std::move(train)), lent_(lent), replica_(replica), stepper_(stepper) {}

void Verifier::say(const std::string& sentence) const {
  if (world().rank() == 0) lent_.log.info(sentence);
}

RunWitness Verifier::witness(const RunPosition& at) {
  if (at.last_batch == 0) return {};
  data::SampleTurn turn = stepper_.turn_at(at.consumed_samples - at.last_batch);
  turn.global_batch = int(at.last_batch);
  Feed feed(train_.set, training_sampler(train_.order, train_.set->size()), place_of(replica_, train_.order),
            at.consumed_samples - at.last_batch);
  Evaluation sums;
  replica_.evaluate(feed.next(turn, stepper_.excerpt_at(at.step)), sums, 0);
  double loss = 0;
  for (const LossSum& sum : sums) loss += sum.mean();
  return {.loss = loss, .weights_norm = global_norm(replica_.weights(), Look::masters)};
}

void Verifier::verify(const RunFacts& facts, const Kinship& kin) {
  const std::string& from = kin.from;
  if (!facts.witness.loss)
    fail(Kind::usage, "{checkpoint.verify}: ", from,
         " says nothing to compare with: {checkpoint.verify} was not given when it was saved");
  const RunWitness now = witness(facts.run);
  const double allowed = kin.rounding;
  const double loss_off = std::abs(*now.loss - *facts.witness.loss);
  const double norm_off = std::abs(*now.weights_norm - *facts.witness.weights_norm);
  if (!(loss_off <= allowed * std::abs(*facts.witness.loss)) ||
      !(norm_off <= allowed * std::abs(*facts.witness.weights_norm)))
    fail(Kind::data,
         fmt::format(
             "{{checkpoint.verify}}: {}: the last batch has loss {:.17g}, and {:.17g} when it was saved; "
             "the weights have norm {:.17g}, and {:.17g} when they were saved",
             from, *now.loss, *facts.witness.loss, *now.weights_norm, *facts.witness.weights_norm));
  say(fmt::format("verified: the last batch has loss {:.9g} again, {}", *now.loss,
                  allowed == 0 ? "every bit equal" : "equal to rounding under another layout"));
}

Replay Verifier::about_to_do(std::int64_t step) const {
  const StepOrder order = stepper_.order_of(step);
  return {.step = step,
          .first_sample = stepper_.consumed(),
          .batch = stepper_.turn_at(stepper_.consumed()).global_batch,
          .rate = order.rate,
          .ends_rate = order.ends_rate,
          .decay = order.decay,
          .skipped = stepper_.skips(step),
          .tensors = {}};
}

void Verifier::did(Replay& replay, const StepReport& report) {
  replay.applied = report.applied;
  if (report.applied) {
    replay.losses.clear();
    for (std::size_t i = 0; i < report.losses.size(); ++i)
      replay.losses.push_back({replica_.losses()[i].name, report.losses[i]});
    replay.grad_norm = report.grad_norm;
  }
  replay.tensors = marks_of(replica_.weights(), replica_.optimizer(), world());
}

std::string Verifier::not_to_be_replayed(const Kinship& kin, const Progress& progress) {
  if (progress.first_step > progress.steps) return "no step follows";
  if (!kin.another_step.empty()) return kin.another_step;
  const bool own_means = std::ranges::any_of(
      replica_.losses(), [](const NamedLoss& loss) { return loss.mean == LossMean::microbatches; });
  if (kin.regrouped && (own_means || kin.groups_weigh))
    return "micro batches hold other samples, and each weighs its own tokens";
  std::string why;
  const std::string record = told_by_first(world(), kin.from, why);
  if (record.empty()) return why;
  expected_ = Expected{replay_from_json(record, Hash{}, kin.from), kin.rounding, kin.from};
  return another_step(expected_->saved, about_to_do(progress.first_step));
}

void Verifier::expect(const RunFacts& facts, const Kinship& kin, const Progress& progress) {
  const std::string why = not_to_be_replayed(kin, progress);
  if (why.empty()) return;
  expected_.reset();
  verify(facts, kin);
  say(fmt::format("{{checkpoint.verify}}: step {} was not compared, moments were not looked at: {}",
                  progress.first_step, why));
}

StepReport Verifier::step(std::int64_t step, StepTimers* timers, Saver* saver) {
  if (!saver && !expected_) return stepper_.step(step, timers);
  Replay now = about_to_do(step);
  const StepReport report = stepper_.step(step, timers);
  did(now, report);
  if (expected_) compare(now);
  if (saver) saver->record(std::move(now));
  return report;
}

void Verifier::compare(const Replay& now) {
  const auto& [saved, rounding, from] = *expected_;
  if (const std::string differ = difference(saved, now, rounding); !differ.empty())
    fail(Kind::data, "{checkpoint.verify}: ", from, ": step ", now.step,
         " does not come out as it did: ", differ, "; nothing was saved since it was loaded");
  say(
      fmt::format("verified: step {} gives its loss {:.9g}, its gradient norm and all {} weights "
                  "and moments again, {}",
                  now.step, now.losses.empty() ? 0 : now.losses.front().mean, now.tensors.size(),
                  rounding == 0 ? "every bit equal" : "equal to rounding under another layout"));
  expected_.reset();
}

void Verifier::record_one_more(std::int64_t step, Saver& saver) {
  saver.settle();
  if (saver.failed()) return;
  Replay next = about_to_do(step);
  did(next, stepper_.step(step, nullptr, Stepper::NotFinite::passed_over));
  saver.record(std::move(next));
}

}  // namespace weft
