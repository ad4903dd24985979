#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/tiny.h"
#include "tests/train/tiny_run.h"
#include "weft/base/error.h"
#include "weft/train/copies.h"
#include "weft/train/replica.h"
#include "weft/train/suspicion.h"

using namespace weft;
using namespace weft::testing;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
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
