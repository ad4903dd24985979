#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/refused.h"
#include "tests/support/tiny.h"
#include "tests/train/tiny_run.h"
#include "weft/base/error.h"
#include "weft/ops/elementwise.h"
#include "weft/train/copies.h"
#include "weft/train/replica.h"
#include "weft/train/reruns.h"
#include "weft/train/suspicion.h"

using namespace weft;
using namespace weft::testing;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::ThrowsMessage;

namespace {

TrainConfig injecting(InjectedFault kind, FaultCheck check = FaultCheck::rerun) {
  TrainConfig c = tiny_run_without_evaluation();
  c.guard.inject_every = 3;
  c.guard.injected = kind;
  c.guard.faults = check;
  return c;
}

/// What ranks say of their copies after the second rank's weight was changed.
std::string said(const ParallelConfig& parallel, const std::string& changed,
                 const ModelConfig& model = tiny_gpt2()) {
  std::string out;
  run_as_threads(parallel.tp * parallel.dp, [&](Communicator& world) {
    const auto device = open_device("cpu", {.threads = 1});
    const ProcessMesh mesh(
        ParallelLayout({.tp = parallel.tp, .dp = parallel.dp, .ep = parallel.ep, .etp = parallel.etp}),
        world);
    Replica replica({.model = model, .parallel = parallel, .optimizer = {}, .scaling = {}}, {*device, mesh});
    replica.each_parameter([&](Parameter& p) {
      if (world.rank() == 1 && p.name == changed) p.value.as<float>()[0] += 1e-7F;
    });
    const std::string mine = copies_that_differ(replica);
    if (world.rank() == 0) out = mine;
  });
  return out;
}

}  // namespace

TEST(Guard, takes_the_second_result_where_a_fault_has_passed) {
  const Told plain = train(tiny_run_without_evaluation()), told = train(injecting(InjectedFault::passing));
  EXPECT_THAT(told.losses, ElementsAreArray(plain.losses));
  EXPECT_THAT(told.norms, ElementsAreArray(plain.norms));
  EXPECT_THAT(told.said, HasSubstr("step 3: the loss was not finite and came out as "));
  EXPECT_THAT(told.said, HasSubstr("a passing fault of a machine; the second result counts"));
}

TEST(Guard, stops_where_a_fault_is_there_again) {
  EXPECT_THAT(
      [] { train(injecting(InjectedFault::lasting)); },
      ThrowsMessage<Error>("step 3: the loss is not finite, injected by {guard.inject_every}; the weights "
                           "are as they were before"));
}

TEST(Guard, does_no_step_again_where_that_is_switched_off) {
  EXPECT_THAT([] { train(injecting(InjectedFault::passing, FaultCheck::off)); },
              ThrowsMessage<Error>(HasSubstr("step 3: the loss is not finite")));
}

TEST(Guard, computing_a_step_twice_changes_nothing) {
  TrainConfig c = tiny_run_without_evaluation();
  const Told plain = train(c);
  c.guard.rerun_interval = 2;
  const Told told = train(c);
  EXPECT_THAT(told.losses, ElementsAreArray(plain.losses));
  EXPECT_THAT(told.norms, ElementsAreArray(plain.norms));
}

TEST(Guard, a_checked_step_that_came_out_otherwise_once_counts_as_it_did_twice) {
  const Told plain = train(tiny_run_without_evaluation());
  TrainConfig c = injecting(InjectedFault::passing);
  c.guard.rerun_interval = 3;
  const Told told = train(c);
  EXPECT_THAT(told.losses, ElementsAreArray(plain.losses));
  EXPECT_THAT(told.norms, ElementsAreArray(plain.norms));
  EXPECT_THAT(told.said, HasSubstr("step 3: came out with loss "));
  EXPECT_THAT(told.said, HasSubstr("a passing fault of a machine; the second result counts"));
}

TEST(Guard, a_checked_step_that_never_comes_out_alike_is_a_fault_of_the_machine) {
  TrainConfig c = injecting(InjectedFault::lasting);
  c.guard.rerun_interval = 3;
  EXPECT_THAT(
      [&] { train(c); },
      ThrowsMessage<Refused>(HasSubstr("step 3: computed four times, and no two in a row agree: loss ")));
}

TEST(Guard, computing_every_step_twice_changes_nothing_and_finds_no_difference) {
  TrainConfig c = tiny_run_without_evaluation();
  const Told plain = train(c);
  c.guard.faults = FaultCheck::report;
  const Told told = train(c);
  EXPECT_THAT(told.losses, ElementsAreArray(plain.losses));
  EXPECT_THAT(told.norms, ElementsAreArray(plain.norms));
  EXPECT_THAT(
      told.said,
      HasSubstr("Stats on computation determinism in validation calls\n  From lm loss:\n    6 samples, "
                "all identical\n  From grad norm:\n    6 samples, all identical"));
  for (const report::StepRecord& step : told.steps)
    EXPECT_THAT(step.reruns,
                ElementsAre(Pair("lm loss rerun difference", 0), Pair("grad norm rerun difference", 0)));
  for (const report::StepRecord& step : plain.steps) EXPECT_TRUE(step.reruns.empty());
}

TEST(Guard, tells_how_far_a_step_that_errs_once_is_from_the_result_that_counts) {
  const Told plain = train(tiny_run_without_evaluation());
  const Told told = train(injecting(InjectedFault::passing, FaultCheck::report));
  EXPECT_THAT(told.losses, ElementsAreArray(plain.losses));
  EXPECT_THAT(told.said,
              HasSubstr("From lm loss:\n    6/4 total/identical samples, rel. variability: avg= "));
  EXPECT_THAT(told.said, HasSubstr("From grad norm:\n    6 samples, all identical"));
  for (const std::size_t wrong : {2U, 5U})
    EXPECT_DOUBLE_EQ(told.steps[wrong].reruns[0].second,
                     relative_difference(plain.losses[wrong] + 1e-3, plain.losses[wrong]));
  EXPECT_EQ(told.steps[3].reruns[0].second, 0);
}

TEST(Guard, sees_no_difference_in_a_fault_that_is_there_again) {
  EXPECT_THAT(train(injecting(InjectedFault::lasting, FaultCheck::report)).said,
              HasSubstr("From lm loss:\n    6 samples, all identical"));
}

TEST(Guard, tells_of_differences_at_the_end_of_a_run_too) {
  TrainConfig c = tiny_run_without_evaluation();
  c.guard.faults = FaultCheck::report;
  c.log.interval = 4;
  const std::string said = train(c).said;
  EXPECT_THAT(said, HasSubstr("    4 samples, all identical"));
  EXPECT_THAT(said, HasSubstr("    6 samples, all identical"));
  EXPECT_THAT(said, Not(HasSubstr("    2 samples, all identical")));
}

TEST(Guard, ranks_tell_of_differences_once) {
  TrainConfig c = tiny_run_without_evaluation();
  c.run.ranks = 2;
  c.parallel.dp = 0;
  c.guard.faults = FaultCheck::report;
  c.log.interval = 6;
  const std::string said = train(completed(c)).said, heading = "Stats on computation determinism";
  EXPECT_NE(said.find(heading), std::string::npos);
  EXPECT_EQ(said.find(heading), said.rfind(heading));
}

TEST(Reruns, differ_by_twice_the_difference_over_the_sum) {
  constexpr double inf = std::numeric_limits<double>::infinity(),
                   nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_DOUBLE_EQ(relative_difference(3, 1), 1);
  EXPECT_DOUBLE_EQ(relative_difference(-3, -1), 1);
  EXPECT_EQ(relative_difference(0, 0), 0);
  EXPECT_EQ(relative_difference(nan, nan), 0);
  EXPECT_EQ(relative_difference(inf, inf), 0);
  EXPECT_EQ(relative_difference(nan, 1), inf);
  EXPECT_EQ(relative_difference(1, -inf), inf);
  EXPECT_EQ(relative_difference(2, -2), inf);
}

TEST(Reruns, are_told_with_their_quantiles) {
  Variability of;
  for (int i = 0; i < 500; ++i) of.add(0);
  for (int i = 500; i > 0; --i) of.add(i);
  EXPECT_EQ(of.told(),
            "1000/500 total/identical samples, rel. variability: avg= 1.252E+02, p50= 1.000E+00, p90= "
            "4.010E+02, p99= 4.910E+02, p99.9= 5.000E+02, max: 5.000E+02");
}

TEST(Reruns, keep_the_latest_of_very_many_and_the_greatest_of_all) {
  Variability of;
  of.add(7);
  for (std::size_t i = 0; i < Variability::most_kept; ++i) of.add(0.5);
  EXPECT_EQ(of.told(),
            "100000/0 total/identical samples, rel. variability: avg= 5.000E-01, p50= 5.000E-01, p90= "
            "5.000E-01, p99= 5.000E-01, p99.9= 5.000E-01, max: 7.000E+00");
}

TEST(Guard, finds_a_single_bit_that_replicas_do_not_share) {
  EXPECT_EQ(said({.dp = 2}, ""), "");
  EXPECT_EQ(said({.dp = 2}, "layers.1.mlp.up.weight"),
            "data-parallel ranks hold different bits of layers.1.mlp.up.weight");
}

TEST(Guard, finds_a_bit_in_what_tensor_parallel_ranks_hold_whole) {
  EXPECT_EQ(said({.tp = 2, .dp = 1}, ""), "");
  EXPECT_EQ(said({.tp = 2, .dp = 1}, "layers.0.mlp_norm.gain"),
            "tensor-parallel ranks hold different bits of layers.0.mlp_norm.gain");
}

TEST(Guard, a_vocabulary_that_one_tensor_parallel_rank_holds_whole_is_no_copy) {
  ModelConfig small = tiny_gpt2();
  small.vocabulary = 60;
  EXPECT_EQ(said({.tp = 2, .dp = 1}, "", small), "");
}

TEST(Guard, experts_that_other_ranks_hold_are_no_copies) {
  EXPECT_EQ(said({.tp = 1, .dp = 2, .ep = 2, .etp = 1}, "", tiny_mixture()), "");
  EXPECT_EQ(said({.tp = 2, .dp = 1, .ep = 1, .etp = 2}, "", tiny_mixture()), "");
  EXPECT_EQ(said({.tp = 2, .dp = 2, .ep = 2, .etp = 1}, "", tiny_mixture()), "");
}

TEST(Guard, finds_a_bit_in_an_expert_or_a_router_that_ranks_share) {
  EXPECT_EQ(said({.tp = 1, .dp = 2, .ep = 1, .etp = 1}, "layers.0.experts.2.up.weight", tiny_mixture()),
            "expert-data-parallel ranks hold different bits of layers.0.experts.2.up.weight");
  EXPECT_EQ(said({.tp = 1, .dp = 2, .ep = 2, .etp = 1}, "layers.1.router.weight", tiny_mixture()),
            "data-parallel ranks hold different bits of layers.1.router.weight");
}

TEST(Guard, compares_copies_in_a_run_without_changing_it) {
  TrainConfig c = tiny_run_without_evaluation();
  c.run.ranks = 2;
  c.parallel.dp = 0;
  c = completed(c);
  const Told plain = train(c);
  c.guard.replica_check_interval = 1;
  EXPECT_THAT(train(c).losses, ElementsAreArray(plain.losses));
}

TEST(Guard, decays_the_norms_of_queries_and_keys_where_that_is_asked) {
  TrainConfig c = tiny_run_without_evaluation();
  c.model.qk_norm = true;
  c.optimizer.weight_decay = 0.5;
  const Told plain = train(c);
  c.optimizer.decay_qk_norm = true;
  const Told decayed = train(c);
  EXPECT_EQ(plain.losses[0], decayed.losses[0]);
  EXPECT_NE(plain.losses[5], decayed.losses[5]);
}

TEST(Guard, names_the_weight_that_is_not_finite) {
  const auto spoil = [](std::int64_t step, Replica& replica) {
    if (step != 2) return;
    replica.weights().each_master([](const Held& held) {
      if (held.name != "final_norm.gain") return;
      for (const Piece& piece : held.pieces)
        ops::fill(held.memory.slice(0, piece.at, piece.where.local.elements()), NAN);
    });
    replica.weights().publish();
  };
  for (const int zero : {0, 1, 3}) {
    TrainConfig config = tiny_run_without_evaluation();
    config.parallel.zero = zero;
    config.parallel.dp = config.run.ranks = zero > 0 ? 2 : 1;
    EXPECT_THAT(refused([&] { train(completed(config), {.before_step = spoil}); }),
                HasSubstr("step 2: final_norm.gain was not finite when the step began"))
        << zero;
  }
}
