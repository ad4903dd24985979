// A run that stops, saves and goes on is the run that never stopped: losses, weights and moments, bit by bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/refused.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary.h"
#include "tests/train/run_cut.h"
#include "tests/train/tiny_run.h"

using namespace weft;
using namespace weft::testing;
using support::TemporaryDirectory;
using ::testing::HasSubstr;

namespace {

using Change = void (*)(TrainConfig&);
struct Case {
  const char* name;
  Change change;
};
void PrintTo(const Case& of, std::ostream* out) { *out << of.name; }

class Resume : public ::testing::TestWithParam<Case> {};

/// Six steps at once, and so many and the rest; what the second half saved at step 6.
void expect_equal_halves(const TrainConfig& config, int first_half = 3) {
  const TemporaryDirectory whole, halves;
  const Told unbroken = train(saving(config, whole.path()));
  TrainConfig first = saving(config, halves.path());
  first.exit.interval = first_half;
  const Told before = train(first);
  EXPECT_EQ(before.ending, Ending::at_interval);
  TrainConfig second = saving(config, halves.path());
  second.checkpoint.load = second.checkpoint.save;
  const Told after = train(second);
  EXPECT_EQ(after.ending, Ending::finished);
  ASSERT_EQ(after.losses.size(), std::size_t(6 - first_half));
  EXPECT_EQ(joined(before.losses, after.losses), unbroken.losses);
  EXPECT_EQ(joined(before.norms, after.norms), unbroken.norms);
  EXPECT_EQ(joined(before.scales, after.scales), unbroken.scales);
  EXPECT_EQ(after.validations.back(), unbroken.validations.back());
  EXPECT_EQ(tensors_of(halves / "step_00000006"), tensors_of(whole / "step_00000006"));
}

}  // namespace

TEST_P(Resume, gives_the_bits_of_the_unbroken_run) {
  TrainConfig config = saving(tiny_run(), "later");
  GetParam().change(config);
  expect_equal_halves(completed(config));
}

// Ranks meet in steps 2 and 3 and would again in step 7: after steps 3 and 4 they hold the same, and not.
TEST(Resume, of_ranks_that_go_alone_gives_the_bits_of_the_unbroken_run) {
  for (const Precision precision : {Precision::f32, Precision::bf16})
    for (const int first_half : {3, 4}) {
      TrainConfig config = saving(tiny_run(), "later");
      config.optimizer.kind = OptimizerKind::zerooneadam;
      config.optimizer.epsilon = 1e-3;  // second moments are those of one step
      config.optimizer.zeroone = {.freeze = 1, .variance_steps = 1, .local_steps = 1, .most_local = 16};
      config.parallel.dp = config.run.ranks = 2;
      config.model.precision = precision;
      expect_equal_halves(completed(config), first_half);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Of, Resume,
    ::testing::Values(
        Case{"dropout_and_adam", [](TrainConfig&) {}},
        Case{"sgd", [](TrainConfig& c) { c.optimizer.kind = OptimizerKind::sgd; }},
        Case{"lion", [](TrainConfig& c) { c.optimizer.kind = OptimizerKind::lion; }},
        Case{"lamb", [](TrainConfig& c) { c.optimizer.kind = OptimizerKind::lamb; }},
        Case{"muon_over_ranks",
             [](TrainConfig& c) {
               c.optimizer.kind = OptimizerKind::muon;
               c.parallel.tp = c.parallel.dp = 2;
               c.parallel.zero = 1;
               c.run.ranks = 4;
             }},
        Case{"muon_beside_lion",
             [](TrainConfig& c) {
               c.optimizer.kind = OptimizerKind::muon;
               c.optimizer.muon.others = MuonOthers::lion;
             }},
        Case{"momentum_in_one_bit",
             [](TrainConfig& c) {
               c.optimizer.kind = OptimizerKind::onebitadam;
               c.optimizer.onebit.freeze = 3;
               c.parallel.dp = c.run.ranks = 2;
             }},
        Case{"momenta_that_travel_together",
             [](TrainConfig& c) {
               c.optimizer.kind = OptimizerKind::onebitlamb;
               c.optimizer.onebit.freeze = 3;
               c.parallel.dp = c.parallel.tp = 2;
               c.run.ranks = 4;
             }},
        Case{"moments_of_fewer_bits",
             [](TrainConfig& c) {
               c.optimizer.any_moment_type = true;
               c.optimizer.first_moment = MomentType::fp8;
               c.optimizer.second_moment = MomentType::bf16;
             }},
        Case{"scales_of_eight_bits",
             [](TrainConfig& c) {
               c.model.fp8 = {.format = Fp8Format::hybrid, .history = 3, .amax = AmaxChoice::max};
               c.parallel.tp = c.parallel.pp = 2;
               c.run.ranks = 4;
               c.checkpoint.verify = true;
             }},
        Case{"eight_bits_by_blocks",
             [](TrainConfig& c) {
               c.model.fp8 = {.format = Fp8Format::e4m3, .recipe = Fp8Recipe::blockwise};
               c.parallel.tp = 2;
               c.run.ranks = 2;
             }},
        Case{"a_growing_batch",
             [](TrainConfig& c) {
               c.batch.rampup = {4, 4, 8};
             }},
        Case{
            "samples_that_grow_and_rates_by_tokens",
            [](TrainConfig& c) {
              c.curriculum.rule = {
                  .curve = data::LengthCurve::fixed_linear, .least = 2, .most = 8, .steps = 4, .multiple = 2};
              c.rate.warmup_iterations = 0;
              c.rate.warmup_tokens = 100;
              c.rate.decay_tokens = 300;
              c.checkpoint.verify = true;
            }},
        Case{"samples_in_pieces",
             [](TrainConfig& c) {
               c.curriculum.rule = {
                   .curve = data::LengthCurve::fixed_discrete, .lengths = {2, 5, 8}, .until = {2, 4}};
               c.curriculum.form = data::ExcerptForm::reshape;
             }},
        Case{"bf16", [](TrainConfig& c) { c.model.precision = Precision::bf16; }},
        Case{"gradients_that_are_kept_in_bf16",
             [](TrainConfig& c) {
               c.model.precision = Precision::bf16;
               c.scaling.sum_in_bf16 = true;
               c.parallel.dp = c.run.ranks = 2;
               c.parallel.zero = 2;
             }},
        Case{"f16_with_a_scale_that_moves",
             [](TrainConfig& c) {
               c.model.precision = Precision::f16;
               c.scaling.initial = 1e9;
               c.scaling.window = 2;
               c.scaling.hysteresis = 1;
             }},
        Case{"shuffled_epochs", [](TrainConfig& c) { c.data.order = SampleOrder::cyclic; }},
        Case{"a_stored_order", [](TrainConfig& c) { c.data.index = IndexKind::stored; }},
        Case{"a_skipped_step", [](TrainConfig& c) { c.guard.skip_iterations = {2}; }},
        Case{"saving_in_the_background", [](TrainConfig& c) { c.checkpoint.in_background = true; }},
        Case{"two_by_two_ranks",
             [](TrainConfig& c) {
               c.parallel.tp = c.parallel.dp = 2;
               c.run.ranks = 4;
             }},
        Case{"states_cut_over_ranks",
             [](TrainConfig& c) {
               c.parallel.dp = c.run.ranks = 2;
               c.parallel.zero = 1;
               c.model.precision = Precision::bf16;
             }},
        Case{"gradients_cut_over_ranks",
             [](TrainConfig& c) {
               c.parallel.dp = c.run.ranks = 2;
               c.parallel.zero = 2;
             }},
        Case{"weights_cut_over_ranks",
             [](TrainConfig& c) {
               c.parallel.dp = c.run.ranks = 2;
               c.parallel.zero = 3;
               c.model.precision = Precision::bf16;
               c.checkpoint.in_background = true;
             }},
        Case{"two_groups_that_cut_weights",
             [](TrainConfig& c) {
               c.parallel.dp = c.run.ranks = 4;
               c.parallel.zero = 3;
               c.parallel.shard_groups = 2;
             }},
        Case{"weights_that_near_ranks_hold_twice",
             [](TrainConfig& c) {
               c.parallel.dp = c.run.ranks = 4;
               c.parallel.zero = 3;
               c.parallel.near_ranks = 2;
             }},
        Case{"weights_and_gradients_that_travel_as_small_integers",
             [](TrainConfig& c) {
               c.parallel.dp = c.run.ranks = 4;
               c.parallel.zero = 3;
               c.parallel.near_ranks = 2;
               c.parallel.wire = {.weights = true, .gradients = true};
               c.model.precision = Precision::bf16;
             }},
        Case{"two_stages", [](TrainConfig& c) { c.parallel.pp = c.run.ranks = 2; }}),
    [](const auto& of) { return std::string(of.param.name); });

namespace {

class OtherLayout : public ::testing::TestWithParam<std::pair<RunCut, RunCut>> {};

}  // namespace

// Sums over ranks and microbatches are rounded in another order: as in tests/equal, no more than 2e-6.
TEST_P(OtherLayout, goes_on_to_rounding) {
  const TemporaryDirectory folder;
  const Told unbroken = train(cut_as({"one", 1, 1, 1, 8}, tiny_run()));
  TrainConfig first = saving(cut_as(GetParam().first, tiny_run()), folder.path());
  first.exit.interval = 3;
  train(first);
  TrainConfig second = saving(cut_as(GetParam().second, tiny_run()), folder.path());
  second.checkpoint.load = second.checkpoint.save;
  second.checkpoint.verify = false;
  const Told after = train(second);
  ASSERT_EQ(after.losses.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(after.losses[i], unbroken.losses[3 + i], 2e-6);
}

INSTANTIATE_TEST_SUITE_P(
    From, OtherLayout,
    ::testing::Values(std::pair(RunCut{"tp2", 2, 1, 1, 4}, RunCut{"tp1", 1, 1, 1, 8}),
                      std::pair(RunCut{"tp1", 1, 1, 1, 8}, RunCut{"dp2", 1, 2, 1, 2}),
                      std::pair(RunCut{"dp2", 1, 2, 1, 2}, RunCut{"tp2", 2, 1, 1, 1}),
                      std::pair(RunCut{"pp2", 1, 1, 2, 2}, RunCut{"tp2dp2", 2, 2, 1, 2}),
                      std::pair(RunCut{"zero2", 1, 2, 1, 2, 1}, RunCut{"one", 1, 1, 1, 8}),
                      std::pair(RunCut{"tp2", 2, 1, 1, 4}, RunCut{"zero4", 1, 4, 1, 2, 1}),
                      std::pair(RunCut{"zero_2", 1, 2, 1, 2, 2}, RunCut{"zero_3_of_tp2", 2, 2, 1, 2, 3}),
                      std::pair(RunCut{"zero_3", 1, 4, 1, 2, 3}, RunCut{"zero_0", 1, 2, 1, 4, 0}),
                      std::pair(RunCut{"pp2", 1, 1, 2, 2}, RunCut{"zero_3", 1, 2, 1, 4, 3}),
                      std::pair(RunCut{"zero_3_of_pp2", 1, 2, 2, 2, 3}, RunCut{"zero_1", 1, 4, 1, 2, 1}),
                      std::pair(RunCut{"tp2dp2", 2, 2, 1, 2}, RunCut{"pp2", 1, 1, 2, 4}),
                      std::pair(RunCut{"cp2", 1, 1, 1, 8, 0, 2}, RunCut{"cp1", 1, 1, 1, 8}),
                      std::pair(RunCut{"cp1", 1, 1, 1, 8}, RunCut{"cp2", 1, 1, 1, 8, 0, 2}),
                      std::pair(RunCut{"cp2zero2", 1, 2, 1, 4, 1, 2}, RunCut{"tp2", 2, 1, 1, 8})),
    [](const auto& of) { return std::string(of.param.first.name) + "_to_" + of.param.second.name; });

// From every stage into every other one: in exact mode the six steps are the same wherever they are cut.
TEST(Resume, goes_on_from_every_stage_of_zero_under_every_other_to_the_bit) {
  const auto in = [](int zero) {
    // 4 is the third stage, of four ranks in two groups.
    RunCut cut{.name = "zero", .dp = zero == 4 ? 4 : 2, .micro = 2, .zero = std::min(zero, 3), .exact = true};
    cut.groups = zero == 4 ? 2 : 1;
    cut.precision = Precision::bf16;
    return cut_as(cut, tiny_run());
  };
  const Told unbroken = train(in(0));
  for (const int from : {0, 1, 2, 3, 4}) {
    const TemporaryDirectory folder;
    TrainConfig first = saving(in(from), folder.path());
    first.exit.interval = 3;
    const Told before = train(first);
    for (const int into : {0, 1, 2, 3, 4}) {
      if ((from + into) % every(5) != 0) continue;
      TrainConfig second = in(into);
      second.checkpoint.load = folder.path();
      EXPECT_EQ(joined(before.losses, train(second).losses), unbroken.losses) << from << " to " << into;
    }
  }
}

// States in files are the states in memory, to the checkpoint and to who loads it.
TEST(Resume, goes_on_from_states_in_files_in_memory_and_back_to_the_bit) {
  const TemporaryDirectory spill;
  const auto in = [&](bool on, int zero) {
    RunCut cut{.name = "zero", .dp = 2, .micro = 2, .zero = zero, .exact = true};
    cut.precision = Precision::bf16;
    TrainConfig config = tiny_run();
    config.optimizer.offload = {.on = on, .directory = spill.path(), .weights = zero == 3};
    return cut_as(cut, config);
  };
  const Told unbroken = train(in(false, 0));
  for (const auto& [from, to] : {std::pair(true, false), {false, true}, {true, true}}) {
    const TemporaryDirectory folder;
    TrainConfig first = saving(in(from, to ? 1 : 3), folder.path());
    first.exit.interval = 3;
    first.checkpoint.in_background = to;
    const Told before = train(first);
    for (const int zero : {0, 3}) {
      TrainConfig second = in(to, zero);
      second.checkpoint.load = folder.path();
      EXPECT_EQ(joined(before.losses, train(second).losses), unbroken.losses) << from << " to " << to;
    }
  }
  EXPECT_TRUE(std::filesystem::is_empty(spill.path()));
}

// A feed reads one step ahead, so a run that stops has read the next step's samples too, where there is one.
TEST(Ledger, has_every_sample_once_when_ranks_and_microbatches_change) {
  const TemporaryDirectory folder;
  TrainConfig first = saving(cut_as({"one", 1, 1, 1, 8}, tiny_run()), folder.path());
  first.exit.interval = 3;
  EXPECT_EQ(train(first, {.ledger = true}).samples, counted(0, 4 * 8));
  TrainConfig second = saving(cut_as({"dp2", 1, 2, 1, 2}, tiny_run()), folder.path());
  second.checkpoint.load = second.checkpoint.save;
  EXPECT_EQ(train(second, {.ledger = true}).samples, counted(3 * 8, 6 * 8));
}

TEST(Ledger, has_the_samples_that_were_asked_for_when_the_batch_changes) {
  const TemporaryDirectory folder;
  TrainConfig run = saving(tiny_run(), folder.path());
  run.length = {.samples = 45};
  run.rate.warmup_iterations = run.eval.interval = 0;
  TrainConfig first = run, second = run;
  first.batch.global = 4;
  first.exit.interval = 3;
  train(completed(first));
  second.batch.global = 16;  // of which 45 are two
  second.checkpoint.load = second.checkpoint.save;
  EXPECT_EQ(train(completed(second), {.ledger = true}).samples, counted(3 * 4, 44));
}

// Scales that another run does not have begin at 1, and that is said.
TEST(Resume, goes_on_in_eight_bits_from_a_run_without) {
  TrainConfig first = saving(tiny_run(), "later"), second = first;
  second.model.fp8 = {.format = Fp8Format::hybrid, .history = 2, .amax = AmaxChoice::max};
  TrainConfig longer = second, uniform = second;
  uniform.model.fp8.format = Fp8Format::e4m3;
  longer.model.fp8.history = 3;
  const char* const told = "scales of 8-bit products start at 1, as the checkpoint has none of the same kind";
  for (const auto& [from, to, said] :
       {std::tuple{first, second, true}, std::tuple{second, longer, true}, std::tuple{second, uniform, true},
        std::tuple{second, second, false}, std::tuple{second, first, false}}) {
    const TemporaryDirectory folder;
    TrainConfig before = saving(completed(from), folder.path()), after = saving(completed(to), folder.path());
    before.exit.interval = 3;
    after.checkpoint.load = after.checkpoint.save;
    train(before);
    const Told went = train(after);
    EXPECT_EQ(went.losses.size(), 3U);
    EXPECT_EQ(went.said.find(told) != std::string::npos, said);
  }
}

// What another layout met is what this one goes on from: only the order of sums parts them.
TEST(Resume, scales_of_eight_bits_are_those_of_any_layout) {
  TrainConfig one = saving(tiny_run(), "later");
  one.model.fp8 = {.format = Fp8Format::hybrid, .history = 2, .amax = AmaxChoice::max};
  TrainConfig four = one;
  four.parallel.tp = four.parallel.dp = 2;
  four.run.ranks = 4;
  TrainConfig whole = tiny_run();
  whole.model.fp8 = one.model.fp8;
  const Told unbroken = train(completed(whole));
  const TemporaryDirectory folder;
  TrainConfig first = saving(completed(four), folder.path());
  first.exit.interval = 3;
  train(first);
  TrainConfig second = saving(completed(one), folder.path());
  second.checkpoint.load = second.checkpoint.save;
  const Told after = train(second);
  ASSERT_EQ(after.losses.size(), 3U);
  EXPECT_EQ(after.said.find("start at 1"), std::string::npos);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(after.losses[i], unbroken.losses[3 + i], 1e-2);
}

// The greatest that all ranks met: but for the order of sums, the same whoever held what.
TEST(Resume, scales_of_eight_bits_follow_what_all_ranks_met) {
  const auto saved = [](int tp, int dp, int cp) {
    const TemporaryDirectory folder;
    TrainConfig config = saving(tiny_run(), folder.path());
    config.model.fp8 = {.format = Fp8Format::hybrid};
    config.parallel.tp = tp;
    config.parallel.dp = dp;
    config.parallel.cp = cp;
    config.run.ranks = tp * dp * cp;
    config.exit.interval = 1;
    train(completed(config));
    return tensors_of(folder / "step_00000001");
  };
  const auto alone = saved(1, 1, 1);
  for (const auto& [tp, dp, cp] : {std::array{2, 2, 1}, {1, 2, 2}, {4, 1, 1}}) {
    int scales = 0;
    for (const auto& [name, numbers] : saved(tp, dp, cp)) {
      if (!name.ends_with(".fp8")) continue;
      ++scales;
      const std::vector<double>& expected = alone.at(name);
      ASSERT_EQ(numbers.size(), 9U);
      for (const std::size_t row : {0U, 3U, 6U}) {
        EXPECT_NE(numbers[row], 1) << name;
        EXPECT_NEAR(numbers[row], expected[row], 0.02 * expected[row]) << name;
        EXPECT_NEAR(numbers[row + 1] * numbers[row], 1, 1e-6) << name;
      }
    }
    EXPECT_EQ(scales, 2 * 4);
  }
}
