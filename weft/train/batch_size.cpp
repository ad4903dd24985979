#include "weft/train/batch_size.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "weft/base/error.h"
#include "weft/base/fields.h"

namespace weft {
namespace {

// "250B" is 250 000 000 000, "2.4B" 2 400 000 000.
std::int64_t read_amount(std::string_view from) {
  std::int64_t factor = 1;
  const std::string_view suffixes = "KMBT";
  if (const auto at = from.empty() ? std::string_view::npos : suffixes.find(from.back());
      at != std::string_view::npos) {
    for (std::size_t i = 0; i <= at; ++i) factor *= 1000;
    from.remove_suffix(1);
  }
  double amount = 0;
  read_word(from, amount);
  const double whole = amount * double(factor);
  if (!(whole >= 0 && whole <= legal::count_limit) || whole != std::floor(whole))
    fail(Kind::usage, "{batch.schedule}: '", from, "' is not a whole number from 0 to ",
         std::int64_t(legal::count_limit), " when its suffix is counted");
  return std::int64_t(whole);
}

void check_ramp(const BatchConfig& c) {
  if (c.rampup.size() != 3)
    fail(Kind::usage, "{batch.rampup} needs a first batch, an increment and a number of samples, found ",
         c.rampup.size(), " numbers");
  const auto [start, step, over] = std::array{c.rampup[0], c.rampup[1], c.rampup[2]};
  if (start < 1 || step < 1 || over < 0)
    fail(Kind::usage, "{batch.rampup} ", start, " ", step, " ", over,
         ": the first batch and the increment are at least 1");
  if (start > c.global || (c.global - start) % step != 0)
    fail(Kind::usage, "{batch.rampup}: steps of ", step, " do not lead from ", start,
         " to the global batch size ", c.global);
  if (const std::int64_t increments = (c.global - start) / step; increments > most_increments)
    fail(Kind::usage, "{batch.rampup}: ", increments, " increments of ", step, " are more than ",
         most_increments, ": take a larger one");
}

}  // namespace

std::vector<BatchStep> read_batch_steps(std::string_view schedule) {
  std::vector<BatchStep> steps;
  while (!schedule.empty()) {
    const auto space = std::min(schedule.find(' '), schedule.size());
    const std::string_view entry = schedule.substr(0, space);
    schedule.remove_prefix(std::min(space + 1, schedule.size()));
    if (entry.empty()) continue;
    const auto colon = entry.find(':');
    if (colon == std::string_view::npos)
      fail(Kind::usage, "{batch.schedule}: '", entry, "' is not threshold:batch");
    BatchStep step{read_amount(entry.substr(0, colon)), read_amount(entry.substr(colon + 1))};
    if (step.batch < 1) fail(Kind::usage, "{batch.schedule}: '", entry, "' has an empty batch");
    if (steps.empty() ? step.tokens != 0 : step.tokens <= steps.back().tokens)
      fail(Kind::usage, "{batch.schedule}: thresholds start at 0 and grow, found '", entry, "'");
    steps.push_back(step);
  }
  return steps;
}

BatchSchedule::BatchSchedule(const BatchConfig& c, int data_ranks, std::int64_t sequence)
    : share_(c.micro * data_ranks), round_down_(c.round_down), stepped_(!c.schedule.empty()) {
  if (stepped_) {
    for (const BatchStep& step : read_batch_steps(c.schedule))
      stages_.push_back({step.tokens / sequence, step.batch});
  } else if (!c.rampup.empty()) {
    check_ramp(c);
    const std::int64_t increments = (c.global - c.rampup[0]) / c.rampup[1];
    const double each = increments == 0 ? 0 : double(c.rampup[2]) / double(increments);
    for (std::int64_t i = 0; i < std::max<std::int64_t>(increments, 1); ++i)
      stages_.push_back({std::int64_t(std::ceil(double(i) * each)), c.rampup[0] + i * c.rampup[1]});
    // The last increment falls due exactly at the end of the ramp, and is taken there.
    stages_.push_back({c.rampup[2], c.global});
  } else {
    stages_.push_back({0, c.global});
  }
  walk();
}

std::int64_t BatchSchedule::shared(std::int64_t batch) const {
  if (batch % share_ == 0) return batch;
  if (round_down_ && batch >= share_) return batch / share_ * share_;
  fail(Kind::usage, "global batch size ", batch,
       " is not a multiple of micro batch size times data-parallel ranks, ", share_,
       batch < share_ ? "" : text("; the next smaller is ", batch / share_ * share_));
}

std::int64_t BatchSchedule::at(std::int64_t consumed) const {
  const auto later = std::upper_bound(stages_.begin(), stages_.end(), consumed,
                                      [](std::int64_t n, const Stage& s) { return n < s.from; });
  return shared(later == stages_.begin() ? stages_.front().batch : std::prev(later)->batch);
}

int BatchSchedule::microbatches_at(std::int64_t consumed) const {
  return static_cast<int>(at(consumed) / share_);
}

// Once, so that nobody counts step by step: a ramp may take as many steps as a run.
void BatchSchedule::walk() {
  for (std::size_t i = 0; i + 1 < stages_.size(); ++i) {
    const Stage& here = stages_[i];
    Stage& next = stages_[i + 1];
    const std::int64_t batch = shared(here.batch),
                       left = std::max<std::int64_t>(next.from - here.consumed, 0);
    const std::int64_t steps = (left + batch - 1) / batch;
    next.steps = here.steps + steps;
    next.consumed = here.consumed + steps * batch;
  }
  static_cast<void>(shared(stages_.back().batch));
}

std::int64_t BatchSchedule::consumed_after(std::int64_t steps) const {
  const auto later = std::ranges::upper_bound(stages_, steps, {}, &Stage::steps);
  if (later == stages_.begin()) return 0;
  const Stage& here = *std::prev(later);
  return here.consumed + (steps - here.steps) * shared(here.batch);
}

std::int64_t BatchSchedule::steps_until(std::int64_t samples) const {
  const auto later = std::ranges::lower_bound(stages_, samples, {}, &Stage::consumed);
  if (later == stages_.begin()) return 0;
  const Stage& here = *std::prev(later);
  const std::int64_t batch = shared(here.batch);
  return here.steps + (samples - here.consumed + batch - 1) / batch;
}

std::int64_t BatchSchedule::steps_for(std::int64_t samples) const {
  const Stage& last = stages_.back();
  if (stepped_ || samples <= last.consumed) return steps_until(samples);
  return last.steps + (samples - last.consumed) / shared(last.batch);
}

EvalCounts eval_counts(const EvalConfig& c, std::int64_t steps) {
  const std::int64_t one = c.iterations * c.global;
  if (c.skip_train) return {.valid = one, .test = one};
  if (c.interval == 0) return {.valid = 0, .test = one};
  const std::int64_t left_out = c.from / c.interval;
  return {.valid = std::max<std::int64_t>(0, steps / c.interval + 1 - left_out) * one, .test = one};
}

}  // namespace weft
