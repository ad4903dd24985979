// Optimizers: whose settings are whose, and which layouts they cannot carry.
#include "weft/train/validate.h"

#include <algorithm>

#include "tests/train/completing.h"

using namespace weft;
using namespace weft::testing;

// What is put in files to free memory comes back to it while a save is written.
TEST(ValidateOptimizer, says_that_a_save_in_the_background_copies_states_in_files) {
  for (const bool in_background : {false, true}) {
    TrainConfig c = good();
    c.optimizer.offload = {.on = true, .directory = "spill"};
    c.checkpoint.save = "saved";
    c.checkpoint.interval = 1;
    c.checkpoint.in_background = in_background;
    const std::vector<std::string> notices = complete(c, 1);
    const std::string wanted =
        "{checkpoint.in_background} keeps a copy in memory of all that {optimizer.offload.on} keeps out of "
        "it: leave it out where memory is short";
    EXPECT_EQ(std::ranges::count(notices, wanted), in_background ? 1 : 0);
  }
}

TEST(ValidateOptimizer, refuses_what_another_optimizer_takes) {
  refused([](TrainConfig& c) { c.optimizer.kind = OptimizerKind::soap; },
          "{optimizer.kind=soap}: weft has no such optimizer yet");
  refused(
      [](TrainConfig& c) {
        c.optimizer.kind = OptimizerKind::lamb;
        c.optimizer.any_moment_type = true;
      },
      "{optimizer.any_moment_type} is for {optimizer.kind=adam}, not lamb");
  refused([](TrainConfig& c) { c.optimizer.first_moment = MomentType::bf16; },
          "{optimizer.first_moment} bf16 needs {optimizer.any_moment_type}");
  refused([](TrainConfig& c) { c.optimizer.second_moment = MomentType::fp8; },
          "{optimizer.second_moment} fp8 needs {optimizer.any_moment_type}");
  refused(
      [](TrainConfig& c) {
        c.optimizer.kind = OptimizerKind::lamb;
        c.optimizer.lamb.most = 0.001;
      },
      "{optimizer.lamb.least} 0.01 is above {optimizer.lamb.most} 0.001");
  const auto muon = [](TrainConfig& c) -> MuonConfig& {
    c.optimizer.kind = OptimizerKind::muon;
    return c.optimizer.muon;
  };
  refused([&](TrainConfig& c) { muon(c).steps = 7; },
          "{optimizer.muon.steps} 7 is not a multiple of 5, the steps of {optimizer.muon.rounds=quintic}");
  refused([&](TrainConfig& c) { muon(c).momentum = 1; },
          "{optimizer.muon.momentum} 1 is not at least 0 and below 1");
  refused(
      [&](TrainConfig& c) {
        (void)muon(c);
        c.parallel.zero = 2;
      },
      "{optimizer.kind=muon} needs whole gradients: {parallel.zero} 2 cuts them; take {parallel.zero=1}");
}

TEST(ValidateOptimizer, keeps_gradients_in_bf16_where_it_can) {
  refused([](TrainConfig& c) { c.model.exact = c.scaling.sum_in_bf16 = true; },
          "{scaling.sum_in_bf16} rounds sums that {model.exact} keeps whole: leave one of them out");
  refused([](TrainConfig& c) { c.scaling.sum_in_bf16 = true; },
          "{scaling.sum_in_bf16} needs {model.precision=bf16}");
  refused(
      [](TrainConfig& c) {
        c.model.precision = Precision::bf16;
        c.scaling.sum_in_bf16 = true;
        c.optimizer.kind = OptimizerKind::lamb;
      },
      "{scaling.sum_in_bf16}: {optimizer.kind=lamb} needs gradients in f32; adam, sgd and lion do not");
}

TEST(ValidateOptimizer, refuses_ways_of_muon_that_a_layout_does_not_carry) {
  const auto two_ranks = [](TrainConfig& c) {
    c.optimizer.kind = OptimizerKind::muon;
    c.parallel.tp = 2;
    c.parallel.dp = 1;
  };
  refused(
      [&](TrainConfig& c) {
        two_ranks(c);
        c.model.exact = true;
        c.optimizer.muon.ranks = MuonRanks::blockwise;
      },
      "{model.exact}: the bits of {optimizer.muon.ranks} blockwise depend on the tensor-parallel ranks; take "
      "duplicated",
      2);
  refused(
      [&](TrainConfig& c) {
        two_ranks(c);
        c.model.groups = 1;
        c.optimizer.muon.ranks = MuonRanks::distributed;
      },
      "{optimizer.muon.ranks} distributed takes every row of a matrix on one rank only, and 2 "
      "tensor-parallel ranks "
      "share 1 key groups; take duplicated",
      2);
}

TEST(ValidateOptimizer, refuses_one_bit_messages_where_states_are_cut_or_bits_must_agree) {
  const auto one_bit = [](TrainConfig& c) { c.optimizer.kind = OptimizerKind::onebitadam; };
  refused(
      [&](TrainConfig& c) {
        one_bit(c);
        c.parallel.zero = 1;
      },
      "{optimizer.kind=onebitadam} keeps whole momenta on every rank, and {parallel.zero} 1 cuts them: leave "
      "one of "
      "them out");
  refused(
      [&](TrainConfig& c) {
        one_bit(c);
        c.model.exact = true;
      },
      "{model.exact}: what {optimizer.kind=onebitadam} rounds to one bit depends on 2 ranks that read other "
      "samples: "
      "leave one of them out",
      2);
  refused(
      [&](TrainConfig& c) {
        one_bit(c);
        c.optimizer.onebit.freeze = 0;
      },
      "{optimizer.onebit.freeze} 0 is not at least 1");
}

TEST(ValidateOptimizer, refuses_what_rules_of_one_bit_cannot_do) {
  const auto rule = [](OptimizerKind kind) { return [kind](TrainConfig& c) { c.optimizer.kind = kind; }; };
  const auto zero_one = rule(OptimizerKind::zerooneadam), lamb = rule(OptimizerKind::onebitlamb);
  refused(
      [&](TrainConfig& c) {
        lamb(c);
        c.parallel.zero = 2;
      },
      "{optimizer.kind=onebitlamb} keeps whole momenta on every rank, and {parallel.zero} 2 cuts them: leave "
      "one "
      "of them out");
  refused(
      [&](TrainConfig& c) {
        zero_one(c);
        c.parallel.tp = 2;
        c.model.groups = 1;
      },
      "{optimizer.kind=zerooneadam} would round a key that tensor-parallel ranks share in as many ways, and "
      "2 of "
      "them share 1 key groups: take no more ranks than groups",
      4);
  refused(
      [&](TrainConfig& c) {
        zero_one(c);
        c.guard.replica_check_interval = 5;
      },
      "{guard.replica_check_interval}: ranks that train by {optimizer.kind=zerooneadam} hold other weights "
      "between their meetings: leave one of them out",
      2);
  refused(
      [&](TrainConfig& c) {
        zero_one(c);
        c.optimizer.zeroone.most_local = 0;
      },
      "{optimizer.zeroone.most_local} 0 is not at least 1");
  refused(
      [&](TrainConfig& c) {
        lamb(c);
        c.optimizer.onebit.freeze = 1;
      },
      "{optimizer.onebit.freeze} 1 leaves {optimizer.kind=onebitlamb} no step to learn trust ratios in");
  refused(
      [&](TrainConfig& c) {
        lamb(c);
        c.optimizer.onebit.least_factor = 5;
      },
      "{optimizer.onebit.least_factor} 5 is above {optimizer.onebit.most_factor} 4");
}

// As scripts for accelerators have it.
TEST(ValidateOptimizer, knows_that_processors_compute_in_the_hosts_memory) {
  TrainConfig c = good();
  c.optimizer.offload = {.on = true};
  c.optimizer.kind = OptimizerKind::muon;
  EXPECT_THAT(complete(c, 1),
              ::testing::Contains("{optimizer.offload.on} has no effect: optimizer states lie in "
                                  "the host's memory, where ranks compute; "
                                  "{optimizer.offload.directory} puts them in files"));
  EXPECT_FALSE(c.optimizer.offload.on);
  c = good();
  c.optimizer.offload = {.on = true, .weights = true};
  EXPECT_THAT(
      complete(c, 1),
      ::testing::Contains(::testing::HasSubstr("has no effect: optimizer states and weights lie in the")));
  EXPECT_FALSE(c.optimizer.offload.weights);
}

TEST(ValidateOptimizer, puts_states_of_a_gpu_in_the_hosts_memory) {
  TrainConfig c = good();
  c.run.device = "cuda";
  c.optimizer.offload = {.on = true};
  complete(c, 1);
  EXPECT_TRUE(c.optimizer.offload.on);
  EXPECT_EQ(c.optimizer.offload.fraction, 0);
}

TEST(ValidateOptimizer, refuses_states_in_files_that_cannot_lie_there) {
  const auto on = [](TrainConfig& c) { c.optimizer.offload.on = true; };
  refused(
      [&](TrainConfig& c) {
        on(c);
        c.optimizer.offload.directory = "/tmp";
        c.optimizer.offload.fraction = 1.5;
      },
      "{optimizer.offload.fraction} 1.5 is not between 0 and 1");
  refused(
      [&](TrainConfig& c) {
        on(c);
        c.optimizer.offload.directory = "/tmp";
        c.optimizer.kind = OptimizerKind::muon;
      },
      "{optimizer.offload.on}: {optimizer.kind=muon} needs more of its states at once than a window of them: "
      "take "
      "adam, sgd, lion or lamb");
  const auto weights = [&](TrainConfig& c) {
    c.optimizer.offload = {.on = true, .directory = "/tmp", .weights = true};
    c.parallel.dp = c.run.ranks = 4;
    c.batch.global = 8;
  };
  refused(
      [&](TrainConfig& c) {
        weights(c);
        c.parallel.zero = 2;
      },
      "{optimizer.offload.weights}: {parallel.zero} 2 has every rank write weights that others updated; take "
      "{parallel.zero=3}, or 0",
      4);
  refused(
      [&](TrainConfig& c) {
        weights(c);
        c.parallel.zero = 3;
        c.parallel.near_ranks = 2;
      },
      "{parallel.near_ranks} 2 keeps weights in memory a second time, and {optimizer.offload.weights} keeps "
      "them out of it: leave one of them out",
      4);
}

TEST(ValidateOptimizer, refuses_what_no_optimizer_takes) {
  refused([](TrainConfig& c) { c.optimizer.beta1 = 1; }, "{optimizer.beta1} 1 is not at least 0 and below 1");
  refused([](TrainConfig& c) { c.optimizer.beta2 = -0.1; },
          "{optimizer.beta2} -0.1 is not at least 0 and below 1");
  refused([](TrainConfig& c) { c.optimizer.momentum = 2; },
          "{optimizer.momentum} 2 is not at least 0 and below 1");
  refused([](TrainConfig& c) { c.optimizer.epsilon = -1; }, "{optimizer.epsilon} -1 is not 0 or more");
  refused([](TrainConfig& c) { c.optimizer.clip = -1; }, "{optimizer.clip} -1 is not 0 or more");
  refused([](TrainConfig& c) { c.optimizer.weight_decay = -1; },
          "{optimizer.weight_decay} -1 is not 0 or more");
  refused([](TrainConfig& c) { c.optimizer.weight_decay_end = 1; },
          "{optimizer.weight_decay_start} and {optimizer.weight_decay_end} need "
          "{optimizer.weight_decay_growth} linear or cosine");
  refused([](TrainConfig& c) { c.optimizer.weight_decay_growth = DecayGrowth::linear; },
          "{optimizer.weight_decay_growth} needs {optimizer.weight_decay_start} and "
          "{optimizer.weight_decay_end}");
  refused(
      [](TrainConfig& c) {
        c.optimizer.weight_decay_growth = DecayGrowth::cosine;
        c.optimizer.weight_decay_start = 0.2;
        c.optimizer.weight_decay_end = 0.1;
      },
      "weight decay cannot grow from 0.2 to 0.1");
}
