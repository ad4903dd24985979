#include "weft/train/batch_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "weft/base/error.h"
#include "weft/train/curriculum.h"

using namespace weft;
using testing::ThrowsMessage;

namespace {

// The rule as it is written down: start + int(consumed / samples per increment) * increment until the ramp is
// over.
std::int64_t by_the_rule(const BatchConfig& c, std::int64_t consumed) {
  if (consumed > c.rampup[2]) return c.global;
  const double each = double(c.rampup[2]) / double((c.global - c.rampup[0]) / c.rampup[1]);
  return c.rampup[0] + std::int64_t(double(consumed) / each) * c.rampup[1];
}

void refused(const BatchConfig& c, const std::string& sentence) {
  EXPECT_THAT([&] { BatchSchedule(c, 1, 1); }, ThrowsMessage<Error>(sentence));
}

}  // namespace

TEST(BatchSchedule, stays_the_same_unless_told) {
  const BatchSchedule s({.micro = 2, .global = 8}, 2, 64);
  EXPECT_EQ(s.at(0), 8);
  EXPECT_EQ(s.at(1'000'000), 8);
  EXPECT_EQ(s.microbatches_at(0), 2);
  EXPECT_EQ(s.consumed_after(5), 40);
  EXPECT_EQ(s.steps_for(41), 5);
  EXPECT_EQ(s.steps_until(41), 6);
}

TEST(BatchSchedule, ramps_up_by_the_old_rule) {
  EXPECT_TRUE(rc::check([] {
    const auto increments = *rc::gen::inRange<std::int64_t>(1, 20),
               step = *rc::gen::inRange<std::int64_t>(1, 50);
    BatchConfig c{.micro = 1};
    const auto start = *rc::gen::inRange<std::int64_t>(1, 50);
    c.rampup = {start, step, *rc::gen::inRange<std::int64_t>(1, 5000)};
    c.global = start + increments * step;
    const BatchSchedule s(c, 1, 1);
    const auto consumed = *rc::gen::inRange<std::int64_t>(0, 6000);
    RC_ASSERT(s.at(consumed) == by_the_rule(c, consumed));
  }));
}

TEST(BatchSchedule, counts_the_steps_of_a_ramp) {
  const BatchSchedule s({.micro = 1, .global = 4, .rampup = {2, 2, 8}}, 1, 1);
  EXPECT_EQ(s.at(7), 2);
  EXPECT_EQ(s.at(8), 4);
  EXPECT_EQ(s.consumed_after(5), 12);  // 2 2 2 2 4
  EXPECT_EQ(s.steps_for(17), 6);       // the last batch must be whole
}

TEST(BatchSchedule, steps_up_at_thresholds_in_tokens) {
  const BatchSchedule s({.micro = 1, .global = 8, .schedule = "0:2 1K:4 2K:8"}, 1, 100);
  EXPECT_EQ(s.at(9), 2);
  EXPECT_EQ(s.at(10), 4);
  EXPECT_EQ(s.at(20), 8);
  EXPECT_EQ(s.steps_for(11), 6);  // 2 2 2 2 2 4
}

TEST(BatchSchedule, counts_as_somebody_does_who_takes_step_after_step) {
  EXPECT_TRUE(rc::check([] {
    const auto up_to = [](std::int64_t most) { return *rc::gen::inRange<std::int64_t>(1, most); };
    BatchConfig c{.micro = 1};
    const auto start = up_to(10), increments = *rc::gen::inRange<std::int64_t>(0, 20), each = up_to(5);
    c.rampup = {start, each, *rc::gen::inRange<std::int64_t>(0, 300)};
    c.global = start + increments * each;
    const BatchSchedule s(c, 1, 1);
    const auto samples = up_to(1000);
    std::int64_t steps = 0, consumed = 0;
    for (; consumed < samples; ++steps, consumed += s.at(consumed))
      RC_ASSERT(s.consumed_after(steps) == consumed);
    RC_ASSERT(s.steps_until(samples) == steps);
    const bool partly = consumed > samples && consumed - c.global >= c.rampup[2];
    RC_ASSERT(s.steps_for(samples) == steps - int(partly));
  }));
}

TEST(BatchSchedule, counts_the_steps_of_a_ramp_that_nobody_could_walk_through) {
  const BatchSchedule s({.micro = 1, .global = 2, .rampup = {1, 1, 1'000'000'000'000'000}}, 1, 1);
  EXPECT_EQ(s.steps_until(900'000'000'000'000), 900'000'000'000'000);
  EXPECT_EQ(s.consumed_after(1'000'000'000'000'001), 1'000'000'000'000'002);
}

TEST(BatchSchedule, rounds_down_where_asked) {
  const BatchSchedule s({.micro = 2, .global = 7, .round_down = true}, 2, 64);
  EXPECT_EQ(s.at(0), 4);
}

TEST(BatchSchedule, names_no_smaller_batch_where_there_is_none) {
  const auto refusal = [](std::int64_t global) {
    try {
      (void)BatchSchedule({.micro = 2, .global = global}, 2, 64).at(0);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal(3), ::testing::EndsWith("micro batch size times data-parallel ranks, 4"));
  EXPECT_THAT(refusal(7), ::testing::EndsWith("data-parallel ranks, 4; the next smaller is 4"));
}

TEST(BatchSchedule, refuses_ramps_and_steps_that_lead_nowhere) {
  refused({.micro = 1, .global = 8, .rampup = {2, 4}},
          "{batch.rampup} needs a first batch, an increment and a number of samples, found 2 numbers");
  refused({.micro = 1, .global = 8, .rampup = {0, 4, 10}},
          "{batch.rampup} 0 4 10: the first batch and the increment are at least 1");
  refused({.micro = 1, .global = 9, .rampup = {2, 4, 10}},
          "{batch.rampup}: steps of 4 do not lead from 2 to the global batch size 9");
  refused({.micro = 1, .global = 2'000'002, .rampup = {2, 1, 10}},
          "{batch.rampup}: 2000000 increments of 1 are more than 1000000: take a larger one");
  refused({.micro = 1, .schedule = "0:2 5"}, "{batch.schedule}: '5' is not threshold:batch");
  refused({.micro = 1, .schedule = "5:2"}, "{batch.schedule}: thresholds start at 0 and grow, found '5:2'");
  refused({.micro = 1, .schedule = "0:0"}, "{batch.schedule}: '0:0' has an empty batch");
  refused({.micro = 1, .schedule = "0:x"}, "'x' is not a number");
  refused({.micro = 4, .global = 10},
          "global batch size 10 is not a multiple of micro batch size times data-parallel ranks, 4; the next "
          "smaller is 8");
}

TEST(Steps, follow_from_iterations_samples_or_tokens) {
  TrainConfig c;
  c.model.sequence = 10;
  c.batch = {.micro = 1, .global = 4};
  const BatchSchedule s(c.batch, 1, 10);
  c.length = {.iterations = 7};
  EXPECT_EQ(steps_of(c.length, Curriculum(c.model.sequence), s), 7);
  c.length = {.samples = 30};
  EXPECT_EQ(steps_of(c.length, Curriculum(c.model.sequence), s), 7);
  c.length = {.tokens = 290};
  EXPECT_EQ(steps_of(c.length, Curriculum(c.model.sequence), s), 8);
  c.length = {.samples = 8, .tokens = 290};  // whichever ends first
  EXPECT_EQ(steps_of(c.length, Curriculum(c.model.sequence), s), 2);
  c.length = {};  // of a run that only evaluates
  EXPECT_EQ(steps_of(c.length, Curriculum(c.model.sequence), s), 0);
}

TEST(Evaluation, counts_one_pass_more_than_intervals) {
  const EvalCounts n = eval_counts({.interval = 10, .iterations = 5, .global = 4}, 100);
  EXPECT_EQ(n.valid, 220);
  EXPECT_EQ(n.test, 20);
  EXPECT_EQ(eval_counts({.interval = 0, .iterations = 5, .global = 4}, 100).valid, 0);
  EXPECT_EQ(eval_counts({.interval = 10, .iterations = 5, .global = 4, .skip_train = true}, 100).valid, 20);
  const auto from = [](std::int64_t step) {
    return eval_counts({.interval = 10, .from = step, .iterations = 5, .global = 4}, 100).valid;
  };
  EXPECT_EQ(from(0), 220);
  EXPECT_EQ(from(30), 160);
  EXPECT_EQ(from(39), 160);
  EXPECT_EQ(from(500), 0);
}
