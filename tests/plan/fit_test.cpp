#include "weft/plan/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/support/refused.h"
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

TrainConfig run_of(std::int64_t hidden, std::int64_t micro,
                   const std::function<void(TrainConfig&)>& change = {}) {
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
  if (change) change(c);
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

TEST(Fit, gives_up_what_near_ranks_hold_twice_before_anything_else_that_is_cut) {
  TrainConfig c = run_of(1024, 1);
  c.model.layers = 12;
  c.parallel.dp = c.run.ranks = 4;
  c.parallel.zero = 3;
  c.batch.global = 4;
  TrainConfig once = c;
  c.parallel.near_ranks = 2;
  complete(c, 4);
  complete(once, 4);
  const std::int64_t room = bytes_here(plan_run(once, counter), once.parallel, {.first = 0, .last = 0});
  EXPECT_THAT([&] { fit(c, room); },
              ThrowsMessage<Error>(HasSubstr("; {parallel.near_ranks} 1 would need ")));
}

// Weights and gradients fit, and what Adam keeps beside them does not.
TEST(Fit, names_files_where_states_are_too_large) {
  TrainConfig c = run_of(1024, 1), spilled = c;
  c.model.layers = spilled.model.layers = 12;
  spilled.optimizer.offload.on = true;
  const std::int64_t room = bytes_here(plan_run(spilled, counter), spilled.parallel, {.first = 0, .last = 0});
  EXPECT_THAT([&] { fit(c, room); },
              ThrowsMessage<Error>(
                  HasSubstr("; {optimizer.offload.on} with {optimizer.offload.directory} would need ")));
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

TEST(Fit, blames_evaluations_by_their_own_flag) {
  TrainConfig large = run_of(64, 4), less = large;
  large.eval.micro = large.eval.global = 400;
  less.eval.micro = 50;
  less.eval.global = 400;
  const std::int64_t room = bytes_here(plan_run(less, counter), less.parallel, {.first = 0, .last = 0});
  EXPECT_THAT(
      [&] { fit(large, room); },
      ThrowsMessage<Error>(AllOf(HasSubstr(" while it evaluates, "), HasSubstr(" in all while it trains)"),
                                 HasSubstr("; {eval.micro} 50 would need "))));
  large.eval.micro = large.eval.global = 1'000'000;  // more tokens than are counted
  EXPECT_THAT(
      [&] { fit(large, std::int64_t{1} << 34); },
      ThrowsMessage<Error>(AllOf(StartsWith("this run needs more than "), HasSubstr("; {eval.micro} "))));
}

TEST(Fit, names_the_size_that_makes_a_run_large) {
  struct Case {
    std::string_view field;
    void (*change)(TrainConfig&);
  };
  for (const Case& large : {
           Case{"model.layers", [](TrainConfig& c) { c.model.layers = 400; }},
           Case{"model.hidden", [](TrainConfig& c) { c.model.hidden = 1'000'000'000; }},
           Case{"model.ffn_hidden", [](TrainConfig& c) { c.model.ffn_hidden = 2'000'000'000; }},
           Case{"model.channels", [](TrainConfig& c) { c.model.channels = 2'000'000'000; }},
           Case{"model.vocabulary", [](TrainConfig& c) { c.model.vocabulary = 2'000'000'000; }},
           Case{"model.padded_vocabulary", [](TrainConfig& c) { c.model.padded_vocabulary = 2'000'000'000; }},
           Case{"model.max_positions", [](TrainConfig& c) { c.model.max_positions = 2'000'000'000; }},
           Case{"model.sequence",
                [](TrainConfig& c) {
                  c.model.attention_dropout = 0;
                  c.model.sequence = 10'000'000;
                }},
           Case{"batch.micro", [](TrainConfig& c) { c.batch.micro = c.batch.global = 2'147'483'647; }},
           Case{"batch.global", [](TrainConfig& c) { c.batch.global = 1'000'000; }},
           Case{"model.experts.ffn_hidden",
                [](TrainConfig& c) {
                  c.model.experts.count = 8;
                  c.model.experts.ffn_hidden = 100'000'000;
                }},
       }) {
    const TrainConfig c = run_of(64, 1, large.change);
    EXPECT_THAT([&] { fit(c, std::int64_t{1} << 28); },
                ThrowsMessage<Error>(HasSubstr(text("; {", large.field, "} "))))
        << large.field;
  }
}

// Whose samples take room as a sequence's tokens do: sequences that cannot be much shorter leave it to them.
TEST(Fit, names_the_samples_of_an_evaluation) {
  const TrainConfig c = run_of(64, 1, [](TrainConfig& config) {
    config.model.sequence = 4;
    config.eval.global = 1'000'000;
  });
  const std::int64_t room = overhead_of_a_process() + (10 << 20);
  EXPECT_THAT([&] { fit(c, room); }, ThrowsMessage<Error>(HasSubstr("; {eval.global} ")));
}

// A tokenizer has the words that it has.
TEST(Fit, leaves_a_tokenizers_vocabulary_alone) {
  TrainConfig c = run_of(64, 1, [](TrainConfig& config) { config.model.vocabulary = 2'000'000'000; });
  c.data.tokenizer.type = "GPT2BPETokenizer";
  EXPECT_THAT([&] { fit(c, std::int64_t{1} << 28); },
              ThrowsMessage<Error>(HasSubstr("; take a smaller model, or more machines; ")));
}

TEST(Fit, counts_every_process_that_shares_the_machine) {
  const TrainConfig c = run_of(64, 4);
  const Plan plan = plan_run(c, counter);
  EXPECT_EQ(bytes_here(plan, c.parallel, {.first = 0, .last = 0, .one_process = false}),
            plan.kinds[0].memory.total_peak + overhead_of_a_process());
}

// Its memory has nothing of the process, and it may hold every second rank.
TEST(Fit, counts_the_ranks_that_share_a_gpu) {
  TrainConfig c = run_of(64, 4);
  c.parallel.dp = c.run.ranks = 4;
  complete(c, 4);
  const Plan plan = plan_run(c, counter);
  const RanksHere here{.first = 1, .last = 3, .every = 2, .gpu = "cuda:1"};
  EXPECT_EQ(here.count(), 2);
  EXPECT_EQ(bytes_here(plan, c.parallel, here), 2 * plan.kinds[0].memory.total_peak);
  const auto refusal = [&](RanksHere ranks) {
    return refused([&] { must_fit(c, ranks, {.bytes = 1000, .by = "cuda:1"}, counter); });
  };
  EXPECT_THAT(refusal(here), StartsWith("the 2 ranks on cuda:1 need "));
  EXPECT_THAT(refusal(here), HasSubstr(", and cuda:1 leaves 1000 B; "));
  EXPECT_THAT(refusal({.first = 3, .last = 3, .every = 4, .gpu = "cuda:3"}),
              StartsWith("the rank on cuda:3 needs "));
}
