// Every evaluation of a set goes on where the last one stopped, as Megatron's does.
#include "weft/train/evaluator.h"

#include <fmt/format.h>
#include <cmath>

#include "weft/base/clock.h"
#include "weft/base/format.h"

namespace weft {

Evaluator::Evaluator(EvaluationSettings settings, const data::Datasets& sets, const Lent& lent,
                     Replica& replica, Progress& progress)
    : settings_(std::move(settings)), sets_(sets), lent_(lent), replica_(replica), progress_(progress) {}

// "-0", or the name that was given; empty where there is one set.
std::string Evaluator::name_of_set(data::Split split, std::size_t number) const {
  if (sets_.of[std::size_t(split)].size() < 2) return {};
  const auto& names = settings_.data.validation_names;
  return number < names.size() ? "-" + names[number] : fmt::format("-{}", number);
}

// A whole set may take hours: it is told how far it is, and a run that must stop does not wait for its end.
std::optional<Evaluation> Evaluator::evaluated(Feed& feed, std::int64_t rounds) {
  constexpr double told_every = 30;  // seconds
  const Stopwatch whole;
  Stopwatch since_told;
  Evaluation sums;
  for (std::int64_t round = 0; round < rounds; ++round) {
    const auto why = settings_.must_stop(feed.trouble_ahead(settings_.turn));
    if (why == Ending::unreadable || (why && round > 0)) return std::nullopt;
    replica_.evaluate(feed.next(settings_.turn), sums, settings_.together);
    if (!lent_.outlet || since_told.seconds() < told_every) continue;
    since_told.restart();
    const double left = whole.seconds() * double(rounds - round - 1) / double(round + 1);
    lent_.log.info(
        fmt::format("evaluation: {} of {} batches, {} left", round + 1, rounds, human_duration(left)));
  }
  return sums;
}

bool Evaluator::evaluate(const When& when, data::Split split, const std::string& of) {
  const auto& sets = sets_.of[std::size_t(split)];
  const std::int64_t from = settings_.eval.whole_set ? 0 : progress_.evaluated[split];
  bool whole = true;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    report::Evaluation told{.of = of,
                            .set = name_of_set(split, i),
                            .iteration = when.step,
                            .consumed_samples = when.consumed,
                            .losses = {}};
    std::int64_t consumed = from;
    whole = whole && evaluate_set(sets[i], consumed, told);
    progress_.evaluated[split] = consumed;
    if (!whole) break;
    const double loss = told.losses.front().second;
    if (i == 0 && split == data::Split::valid && !std::isnan(loss)) progress_.validated = {when.step, loss};
    if (std::isnan(loss) && lent_.outlet)
      lent_.log.warning("validation" + told.set + " at " + of + ": no token counts, so there is no loss");
    if (lent_.outlet) lent_.outlet->write(told);
  }
  if (!whole && lent_.outlet) lent_.log.warning("the evaluation is broken off, as the run is to stop");
  return whole;
}

// Leaves `consumed` where a whole evaluation does, so that what is broken off changes no later one.
bool Evaluator::evaluate_set(const std::shared_ptr<const data::Dataset>& given, std::int64_t& consumed,
                             report::Evaluation& into) {
  const int batch = settings_.turn.global_batch;
  const bool whole = settings_.eval.whole_set;
  const auto set = whole ? data::in_whole_batches(given, batch) : given;
  const std::int64_t rounds = whole ? set->size() / batch : settings_.eval.iterations;
  if (whole && lent_.outlet)
    lent_.log.info(fmt::format("{{eval.whole_set}}: {} batches of {} samples{}", rounds, batch,
                               settings_.data.mock ? ", a third of 100,000 made-up documents" : ""));
  auto sampler = whole ? data::sequential_sampler(set->size()) : run_sampler(settings_.data, set->size());
  Feed feed(set, std::move(sampler), place_of(replica_, settings_.data), consumed);
  const auto sums = evaluated(feed, rounds);
  consumed = sums ? feed.consumed() : consumed + rounds * batch;
  if (!sums) return false;
  const std::span<const NamedLoss> losses = replica_.losses();
  for (std::size_t i = 0; i < losses.size(); ++i)
    if (losses[i].mean != LossMean::passes)  // what balances experts is no measure of a text
      into.losses.emplace_back(losses[i].name, i < sums->size() ? (*sums)[i].mean() : 0);
  if (sums->empty() || (*sums)[0].count == 0) into.losses.front().second = std::nan("");
  return true;
}

}  // namespace weft
