// Optimizers: whose settings are whose, and which layouts they cannot carry.
#include "weft/train/validate.h"

#include "tests/train/completing.h"

using namespace weft;
using namespace weft::testing;

TEST(ValidateOptimizer, refuses_what_another_optimizer_takes) {
  refused([](TrainConfig& c) { c.optimizer.kind = OptimizerKind::soap; },
          "--optimizer soap: weft has no such optimizer yet");
  refused(
      [](TrainConfig& c) {
        c.optimizer.kind = OptimizerKind::lamb;
        c.optimizer.any_moment_type = true;
      },
      "--use-precision-aware-optimizer is for --optimizer adam, not lamb");
  refused([](TrainConfig& c) { c.optimizer.first_moment = MomentType::bf16; },
          "--exp-avg-dtype bf16 needs --use-precision-aware-optimizer");
  refused([](TrainConfig& c) { c.optimizer.second_moment = MomentType::fp8; },
          "--exp-avg-sq-dtype fp8 needs --use-precision-aware-optimizer");
  refused(
      [](TrainConfig& c) {
        c.optimizer.kind = OptimizerKind::lamb;
        c.optimizer.lamb.most = 0.001;
      },
      "--lamb-min-coeff 0.01 is above --lamb-max-coeff 0.001");
  const auto muon = [](TrainConfig& c) -> MuonConfig& {
    c.optimizer.kind = OptimizerKind::muon;
    return c.optimizer.muon;
  };
  refused([&](TrainConfig& c) { muon(c).steps = 7; },
          "--muon-num-ns-steps 7 is not a multiple of 5, the steps of --muon-coefficient-type quintic");
  refused([&](TrainConfig& c) { muon(c).momentum = 1; }, "--muon-momentum 1 is not at least 0 and below 1");
  refused(
      [&](TrainConfig& c) {
        (void)muon(c);
        c.parallel.zero = 2;
      },
      "--optimizer muon needs whole gradients: --zero-stage 2 cuts them; take --zero-stage 1");
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
      },
      "--exact: the bits of --muon-tp-mode blockwise depend on the tensor-parallel ranks; take duplicated",
      2);
  refused(
      [&](TrainConfig& c) {
        two_ranks(c);
        c.model.groups = 1;
        c.optimizer.muon.ranks = MuonRanks::distributed;
      },
      "--muon-tp-mode distributed takes every row of a matrix on one rank only, and 2 tensor-parallel ranks "
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
      "--optimizer onebitadam keeps whole momenta on every rank, and --zero-stage 1 cuts them: leave one of "
      "them out");
  refused(
      [&](TrainConfig& c) {
        one_bit(c);
        c.model.exact = true;
      },
      "--exact: what --optimizer onebitadam rounds to one bit depends on 2 ranks that read other samples: "
      "leave one of them out",
      2);
  refused(
      [&](TrainConfig& c) {
        one_bit(c);
        c.optimizer.onebit.freeze = 0;
      },
      "--onebit-freeze-step 0 is not at least 1");
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
