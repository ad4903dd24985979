#include "weft/plan/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/backend/open.h"
#include "weft/base/error.h"
#include "weft/train/validate.h"

using namespace weft;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;

namespace {

TrainConfig run_of(std::int64_t hidden, std::int64_t micro) {
  TrainConfig c;
  c.model.layers = 2;
  c.model.hidden = hidden;
  c.model.heads = 4;
  c.model.sequence = 256;
  c.model.vocabulary = 1000;
  c.data.mock = true;
  c.batch.micro = micro;
  c.batch.global = 64;
  c.length.iterations = 2;
  c.rate.peak = 1e-3;
  complete(c, 1);
  return c;
}

std::unique_ptr<Device> counter() { return open_device("meta", {.threads = 1}); }

void fit(const TrainConfig& c, std::int64_t bytes) {
  must_fit(c, {.first = 0, .last = 0}, {.bytes = bytes, .by = "the machine"}, counter);
}

}  // namespace

TEST(Fit, says_nothing_where_there_is_room) { EXPECT_NO_THROW(fit(run_of(64, 4), std::int64_t{1} << 34)); }

TEST(Fit, names_the_largest_microbatch_that_fits) {
  const TrainConfig large = run_of(64, 64), less = run_of(64, 16);
  const std::int64_t room = bytes_here(plan_run(less, counter), less.parallel, {.first = 0, .last = 0});
  EXPECT_THAT(
      [&] { fit(large, room); },
      ThrowsMessage<Error>(AllOf(
          StartsWith("this run needs "), HasSubstr(" activations"), HasSubstr("and the machine leaves "),
          HasSubstr("; {batch.micro} 16 would need "), EndsWith("; {no_memory_check} starts all the same"))));
}

TEST(Fit, names_the_first_stage_of_zero_that_fits) {
  TrainConfig c = run_of(1024, 1);
  c.model.layers = 12;  // what a stage keeps of one layer is little beside what it cuts of all
  c.parallel.dp = 2;
  c.run.ranks = 2;
  complete(c, 2);
  for (const int zero : {1, 2, 3}) {
    TrainConfig cut = c;
    cut.parallel.zero = zero;
    const std::int64_t room = bytes_here(plan_run(cut, counter), cut.parallel, {.first = 0, .last = 0});
    EXPECT_THAT([&] { fit(c, room); },
                ThrowsMessage<Error>(HasSubstr(text("; {parallel.zero=", zero, "} would need "))));
  }
}

TEST(Fit, names_a_smaller_model_where_nothing_else_helps) {
  EXPECT_THAT([&] { fit(run_of(8192, 1), std::int64_t{1} << 30); },
              ThrowsMessage<Error>(HasSubstr("; {model.hidden} ")));
}

TEST(Fit, knows_of_sizes_that_nobody_can_count) {
  EXPECT_THAT(
      [&] { fit(run_of(1'000'000'000, 1), std::int64_t{1} << 34); },
      ThrowsMessage<Error>(AllOf(StartsWith("this run needs more than "), HasSubstr("{model.hidden} "))));
}

TEST(Fit, counts_every_process_that_shares_the_machine) {
  const TrainConfig c = run_of(64, 4);
  const Plan plan = plan_run(c, counter);
  EXPECT_EQ(bytes_here(plan, c.parallel, {.first = 0, .last = 0, .one_process = false}),
            plan.kinds[0].memory.total_peak + overhead_of_a_process());
}
