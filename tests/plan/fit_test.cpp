#include "weft/plan/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "tests/support/refused.h"
#include "tests/support/sanitized.h"
#include "weft/backend/open.h"
#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/plan/changes.h"
#include "weft/train/validate.h"

using namespace weft;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;
using weft::testing::some_of;

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
  (void)must_fit(c, {.first = 0, .last = 0}, {.bytes = bytes, .by = "the machine"}, counter);
}

/// Ranks that read other samples.
TrainConfig run_on(int ranks, std::int64_t hidden, const std::function<void(TrainConfig&)>& change) {
  TrainConfig c = run_of(hidden, 1);
  c.parallel.dp = c.run.ranks = ranks;
  change(c);
  c.eval.micro = c.batch.micro;
  complete(c, ranks);
  return c;
}

/// As a run would take it.
void again(TrainConfig c) {
  if (c.optimizer.offload.on) c.optimizer.offload.directory = "DIR";
  complete(c, c.parallel.dp);
}

std::int64_t need(const TrainConfig& c) {
  return bytes_here(plan_run(c, counter), c.parallel, {.first = 0, .last = 0});
}

}  // namespace

TEST(Fit, says_nothing_where_there_is_room) { EXPECT_NO_THROW(fit(run_of(64, 4), std::int64_t{1} << 34)); }

// Of two ranks that hold other experts one is crowded at a time.
TEST(Fit, warns_of_experts_that_all_tokens_go_to) {
  TrainConfig c = run_of(64, 8);
  c.model.experts.count = 4;
  c.parallel.dp = c.parallel.ep = 2;
  complete(c, 2);
  const RanksHere both{.first = 0, .last = 1};
  const Plan plan = plan_run(c, counter);
  const KindOfRank& kind = plan.kinds.front();
  const std::int64_t even = bytes_here(plan, c.parallel, both);
  const std::int64_t crowded = bytes_here_if_crowded(plan, c.parallel, both);
  EXPECT_EQ(crowded - even, kind.crowded - kind.memory.total_peak);
  EXPECT_GT(crowded, even);
  const auto said = [&](std::int64_t bytes) {
    return must_fit(c, both, {.bytes = bytes, .by = "the machine"}, counter);
  };
  EXPECT_EQ(said(crowded), "");
  EXPECT_EQ(said(crowded - 1), "where all tokens go to the experts of one rank, " + human_bytes(crowded) +
                                   " is needed, and the machine leaves " + human_bytes(crowded - 1));
}

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
                  HasSubstr("; {optimizer.offload.on} {optimizer.offload.directory} DIR would need ")));
}

// States are in files already, and weights are too large beside the rest.
TEST(Fit, names_files_for_weights_where_states_lie_in_some) {
  TrainConfig c = run_of(1024, 1), spilled = c;
  for (TrainConfig* config : {&c, &spilled}) {
    config->model.layers = 12;
    config->optimizer.offload = {.on = true, .directory = "DIR"};
  }
  spilled.optimizer.offload.weights = true;
  const std::int64_t room = bytes_here(plan_run(spilled, counter), spilled.parallel, {.first = 0, .last = 0});
  EXPECT_THAT([&] { fit(c, room); },
              ThrowsMessage<Error>(HasSubstr("; {optimizer.offload.weights} would need ")));
}

// Muon wants whole gradients, and ranks that speak in one bit whole states: what a run would refuse is not
// counted, let alone named.
TEST(Fit, names_nothing_that_the_optimizer_refuses) {
  for (const OptimizerKind kind : {OptimizerKind::muon, OptimizerKind::onebitadam, OptimizerKind::zerooneadam,
                                   OptimizerKind::onebitlamb, OptimizerKind::lamb, OptimizerKind::sgd}) {
    const TrainConfig c = run_on(2, 1024, [kind](TrainConfig& config) { config.optimizer.kind = kind; });
    for (const Changes& changes : changes_of_means(c))
      for (const Change& change : changes) EXPECT_NO_THROW(again(change.config)) << change.flags;
    EXPECT_NO_THROW(again(with_all(c, means_that_keep_the_model(c)).config));
    EXPECT_THAT([&] { fit(c, std::int64_t{1} << 20); }, ThrowsMessage<Error>(HasSubstr("of memory")));
  }
}

TEST(Fit, names_files_for_every_optimizer_that_walks) {
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::lion, OptimizerKind::lamb}) {
    TrainConfig c = run_of(1024, 1, [kind](TrainConfig& config) {
      config.optimizer.kind = kind;
      config.model.layers = 12;
    });
    TrainConfig spilled = c;
    spilled.optimizer.offload.on = true;
    EXPECT_THAT(
        [&] { fit(c, need(spilled)); },
        ThrowsMessage<Error>(HasSubstr("; {optimizer.offload.on} {optimizer.offload.directory} DIR ")));
  }
}

// No single change would do, and no model has to shrink: of all that keeps it, what is needed is named.
TEST(Fit, names_what_keeps_the_model_together_before_a_smaller_one) {
  const TrainConfig c = run_on(2, 512, [](TrainConfig& config) {
    config.batch.micro = 8;
    config.model.precision = Precision::bf16;
    config.model.layers = 12;
  });
  TrainConfig all = c;
  all.parallel.zero = 3;
  all.optimizer.offload.on = true;
  all.scaling.sum_in_bf16 = true;
  all.model.recompute = {.what = Recompute::full, .method = RecomputeMethod::uniform, .layers = 1};
  all.batch.micro = all.eval.micro = 1;
  EXPECT_THAT([&] { fit(c, need(all)); },
              ThrowsMessage<Error>(HasSubstr(
                  "; {optimizer.offload.on} {optimizer.offload.directory} DIR {model.recompute.what=full} "
                  "{scaling.sum_in_bf16=true} {batch.micro} 1 {parallel.zero=3} would need ")));
  TrainConfig some = c;
  some.parallel.zero = 3;
  some.batch.micro = some.eval.micro = 2;
  EXPECT_THAT([&] { fit(c, need(some)); },
              ThrowsMessage<Error>(HasSubstr("; {batch.micro} 2 {parallel.zero=3} would need ")));
}

TEST(Fit, names_weights_in_bf16_last_of_what_keeps_the_model) {
  const TrainConfig c = run_on(2, 512, [](TrainConfig& config) { config.model.layers = 12; });
  TrainConfig all = with_all(c, means_that_keep_the_model(c)).config;
  EXPECT_EQ(all.model.precision, Precision::bf16);
  EXPECT_THAT([&] { fit(c, need(all)); },
              ThrowsMessage<Error>(
                  HasSubstr("; {model.precision=bf16} {optimizer.offload.weights} {optimizer.offload.on} ")));
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
  const std::vector<Case> all{
      Case{"model.hidden", [](TrainConfig& c) { c.model.hidden = 1'000'000'000; }},
      Case{"model.layers",
           [](TrainConfig& c) {
             c.model.layers = 500;
             c.optimizer.kind = OptimizerKind::muon;  // whose states no file takes
           }},
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
  };
  for (const Case& large : some_of(all, 5)) {
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

// All ranks of a machine fill one disk.
TEST(Fit, counts_what_all_ranks_of_a_machine_put_in_files) {
  TrainConfig c = run_on(
      2, 64, [](TrainConfig& config) { config.optimizer.offload = {.on = true, .directory = "spill"}; });
  const RanksHere here{.first = 0, .last = 1};
  const Plan plan = plan_run(c, counter);
  const std::int64_t bytes = disk_here(plan, c.parallel, here);
  EXPECT_EQ(bytes, 2 * plan.kinds[0].on_disk);
  const FreeMemory enough{.bytes = std::int64_t{1} << 34, .by = "the machine", .on_disk = bytes};
  EXPECT_NO_THROW((void)must_fit(c, here, enough, counter));
  FreeMemory less = enough;
  --less.on_disk;
  EXPECT_THAT([&] { (void)must_fit(c, here, less, counter); },
              ThrowsMessage<Error>(AllOf(
                  StartsWith("the 2 ranks on this machine put "),
                  HasSubstr(" of optimizer states in files, and {optimizer.offload.directory} spill has "),
                  EndsWith(" left: take another disk, or a smaller {optimizer.offload.fraction}"))));
  c.optimizer.offload.weights = true;
  less.on_disk = 0;
  EXPECT_THAT([&] { (void)must_fit(c, here, less, counter); },
              ThrowsMessage<Error>(HasSubstr(" of weights and optimizer states in files, and ")));
  c.parallel.dp = c.run.ranks = 1;
  complete(c, 1);
  EXPECT_THAT([&] { (void)must_fit(c, {.first = 0, .last = 0}, less, counter); },
              ThrowsMessage<Error>(StartsWith("this run puts ")));
}

// What a rank writes between it and those that hold the same: with Adam 12 bytes of a parameter over them.
TEST(Fit, counts_the_copy_that_is_written_in_the_background) {
  for (const int zero : {0, 1, 3}) {
    TrainConfig c = run_on(2, 64, [zero](TrainConfig& config) { config.parallel.zero = zero; });
    const std::int64_t before = need(c);
    c.checkpoint.save = "saved";
    c.checkpoint.interval = 1;
    c.checkpoint.in_background = true;
    const Plan plan = plan_run(c, counter);
    const double wanted = 12.0 * double(plan.parameters.total()) / 2;
    EXPECT_NEAR(double(plan.kinds[0].copied), wanted, 0.01 * wanted) << zero;
    EXPECT_EQ(need(c), before + plan.kinds[0].copied);
    EXPECT_THAT([&] { fit(c, before); },
                ThrowsMessage<Error>(ContainsRegex(", and .* for \\{checkpoint.in_background\\}\\)")));
    c.checkpoint.save_optimizer = false;
    EXPECT_NEAR(double(plan_run(c, counter).kinds[0].copied), wanted / 3, 0.01 * wanted) << zero;
  }
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
    return refused([&] { (void)must_fit(c, ranks, {.bytes = 1000, .by = "cuda:1"}, counter); });
  };
  EXPECT_THAT(refusal(here), StartsWith("the 2 ranks on cuda:1 need "));
  EXPECT_THAT(refusal(here), HasSubstr(", and cuda:1 leaves 1000 B; "));
  EXPECT_THAT(refusal({.first = 3, .last = 3, .every = 4, .gpu = "cuda:3"}),
              StartsWith("the rank on cuda:3 needs "));
}

// A byte and half a byte a number, four more for each block, instead of four bytes.
TEST(Plan, says_what_small_integers_take) {
  const auto sent = [](bool small) {
    const TrainConfig c = run_on(2, 256, [small](TrainConfig& config) {
      config.parallel.zero = 3;
      config.parallel.wire = {.weights = small, .gradients = small};
    });
    return plan_run(c, counter, PlanFor::messages).kinds[0].sends[Partners::data];
  };
  const Sent whole = sent(false), small = sent(true);
  const auto gathered = double(whole.of(Traffic::gathered)), sums = double(whole.of(Traffic::sums));
  EXPECT_NEAR(double(small.of(Traffic::gathered)), gathered * (1 + 4 / 2048.0) / 4, 0.03 * gathered);
  EXPECT_NEAR(double(small.of(Traffic::traded)), sums * (0.5 + 4 / 256.0) / 4, 0.03 * sums);
  EXPECT_LT(double(small.of(Traffic::sums)), 0.03 * sums);
}
