// Optimizers under layouts: what they need of whole tensors, they have whoever holds the parts.
#include <gtest/gtest.h>

#include "tests/equal/run.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary.h"

using namespace weft;
using namespace weft::testing;

namespace {

struct Named {
  const char* name;
  OptimizerConfig config;
};

const Named all_optimizers[] = {
    {"sgd", {.kind = OptimizerKind::sgd}},
    {"lion", {.kind = OptimizerKind::lion}},
    {"lamb", {.kind = OptimizerKind::lamb}},
    {"muon", {.kind = OptimizerKind::muon, .muon = {.nesterov = true, .ranks = MuonRanks::duplicated}}},
    {"muon_and_lion", {.kind = OptimizerKind::muon, .muon = {.others = MuonOthers::lion}}},
    {"adam_in_16_bits",
     {.any_moment_type = true, .first_moment = MomentType::bf16, .second_moment = MomentType::fp16}},
    {"adam_in_8_bits",
     {.any_moment_type = true, .first_moment = MomentType::fp8, .second_moment = MomentType::fp8}}};

class Optimizers : public ::testing::TestWithParam<Named> {};

Curve trained(const Named& optimizer, Cut cut, bool exact) {
  cut.optimizer = optimizer.config;
  cut.exact = exact;
  cut.steps = 4;
  ModelConfig config = shape_of(cut.parallel.tp == 4 ? "llama" : "gpt2", cut.parallel.pp > 1 ? 4 : 2);
  config.precision = cut.parallel.dp > 1 ? Precision::bf16 : Precision::f32;
  complete(config);
  return train(config, cut);
}

}  // namespace

TEST_P(Optimizers, give_the_bits_of_one_rank_in_exact_mode) {
  const Cut cuts[] = {{{.tp = 2, .dp = 1}, 1},
                      {{.tp = 4, .dp = 1, .sequence = true}, 1},
                      {{.pp = 2, .dp = 1}, 1},
                      {{.tp = 2, .pp = 2, .dp = 1}, 1}};
  for (const Cut& cut : cuts) {
    Cut alone{{.dp = 1}, 1};
    alone.optimizer = GetParam().config;
    alone.exact = true;
    alone.steps = 4;
    ModelConfig config = shape_of(cut.parallel.tp == 4 ? "llama" : "gpt2", cut.parallel.pp > 1 ? 4 : 2);
    const Curve one = train(config, alone), many = trained(GetParam(), cut, true);
    EXPECT_EQ(many.losses, one.losses) << name_of(cut);
    EXPECT_EQ(many.norms, one.norms) << name_of(cut);
    EXPECT_TRUE(many.copies_agree);
  }
}

TEST_P(Optimizers, give_the_same_bits_whether_states_are_cut_or_not) {
  for (const bool exact : {false, true}) {
    const Curve whole = trained(GetParam(), {{.tp = 2, .dp = 2}}, exact);
    const Curve cut = trained(GetParam(), {{.tp = 2, .dp = 2, .zero = 1, .bucket_elements = 700}}, exact);
    EXPECT_EQ(cut.losses, whole.losses);
    EXPECT_EQ(cut.norms, whole.norms);
  }
}

// Muon stops at the first stage, where groups may hold the same. A rank takes its samples at once, so that
// stages add in one order.
TEST_P(Optimizers, give_the_same_bits_however_much_is_cut) {
  const auto of = [](ParallelConfig parallel, bool exact) {
    return trained(GetParam(), {.parallel = parallel, .micro_batch = 8 / parallel.dp}, exact);
  };
  const bool whole_gradients = GetParam().config.kind == OptimizerKind::muon;
  for (const bool exact : {false, true}) {
    const Curve two = of({.tp = 2, .dp = 2}, exact), four = of({.dp = 4}, exact);
    for (const int zero : {1, 2, 3}) {
      if (whole_gradients && zero > 1) continue;
      const Curve cut = of({.tp = 2, .dp = 2, .zero = zero}, exact);
      EXPECT_EQ(cut.losses, two.losses) << "stage " << zero;
      EXPECT_EQ(cut.norms, two.norms) << "stage " << zero;
      if (!exact) continue;  // groups add in another order
      const Curve groups = of({.dp = 4, .zero = zero, .shard_groups = 2}, exact);
      EXPECT_EQ(groups.losses, four.losses) << "stage " << zero;
      EXPECT_EQ(groups.norms, four.norms) << "stage " << zero;
    }
  }
}

TEST_P(Optimizers, hold_what_the_counting_device_counts) {
  for (const Cut& cut : {Cut{{.dp = 1}}, Cut{{.tp = 2, .dp = 2, .zero = 1}}}) {
    Cut mine = cut;
    mine.optimizer = GetParam().config;
    EXPECT_EQ(memory_difference(shape_of("gpt2", 2), mine), "");
  }
}

namespace {

/// Of rules that speak in one bit: Adam or LAMB for two steps, then signs. Second moments of so few steps are
/// far from what they will be, and a large epsilon keeps what is divided by them in bounds.
const Named one_bit_optimizers[] = {
    {"onebitadam", {.kind = OptimizerKind::onebitadam, .epsilon = 1e-3, .onebit = {.freeze = 3}}},
    {"onebitlamb", {.kind = OptimizerKind::onebitlamb, .epsilon = 1e-3, .onebit = {.freeze = 3}}},
    {"zerooneadam",
     {.kind = OptimizerKind::zerooneadam,
      .epsilon = 1e-3,
      .zeroone = {.freeze = 3, .variance_steps = 1, .local_steps = 1, .most_local = 2}}}};

class InOneBit : public ::testing::TestWithParam<Named> {};

}  // namespace

// States in files, all of them or a part: no bit differs, and memory is what the counting device counts.
TEST(Offload, changes_no_bit_under_any_stage) {
  const support::TemporaryDirectory folder;
  for (const Precision precision : {Precision::f32, Precision::bf16})
    for (const OptimizerKind kind : {OptimizerKind::adam, OptimizerKind::lamb})
      for (const int zero : {0, 1, 2, 3}) {
        if (kind == OptimizerKind::lamb && zero % 2 == 0) continue;
        ModelConfig config = shape_of("gpt2", 2);
        config.precision = precision;
        const auto curve = [&](bool on, double fraction) {
          Cut cut{.parallel = {.tp = 2, .dp = 2, .zero = zero}, .steps = 4};
          cut.optimizer.kind = kind;
          cut.optimizer.offload = {.on = on, .directory = folder.path(), .fraction = fraction};
          Curve out = train(config, cut);
          out.bytes_at_rest.clear();
          return out;
        };
        const Curve whole = curve(false, 1);
        EXPECT_EQ(curve(true, 1), whole) << "stage " << zero;
        EXPECT_EQ(zero == 1 ? curve(true, 0.5) : whole, whole);
      }
}

// Weights in files too, whole or a share of them: read in the order of layers, and written by the update.
TEST(Offload, of_weights_changes_no_bit) {
  const support::TemporaryDirectory folder;
  for (const Precision precision : {Precision::f32, Precision::bf16})
    for (const ParallelConfig& layout :
         {ParallelConfig{.dp = 1}, ParallelConfig{.dp = 2}, ParallelConfig{.tp = 2, .dp = 2, .zero = 3},
          ParallelConfig{.pp = 2, .dp = 2, .zero = 3}, ParallelConfig{.dp = 4, .zero = 3, .shard_groups = 2},
          ParallelConfig{.dp = 2, .ep = 2, .zero = 3}}) {
      ModelConfig config = shape_of(layout.ep > 1 ? "mixture" : "gpt2", 4);
      config.precision = precision;
      const auto curve = [&](bool weights, double fraction) {
        Cut cut{.parallel = layout, .micro_batch = 2, .steps = 4};
        cut.optimizer.offload = {
            .on = true, .directory = folder.path(), .fraction = fraction, .weights = weights};
        Curve out = train(config, cut);
        out.bytes_at_rest.clear();
        return out;
      };
      const Curve in_memory = curve(false, 1);
      EXPECT_TRUE(in_memory.copies_agree);
      EXPECT_EQ(curve(true, 1), in_memory);
      if (layout.zero == 0) {
        EXPECT_EQ(curve(true, 0.5), in_memory);
      }
    }
}

TEST(Offload, of_weights_holds_what_the_counting_device_counts) {
  const support::TemporaryDirectory folder;
  for (const Precision precision : {Precision::f32, Precision::bf16})
    for (const ParallelConfig& layout :
         {ParallelConfig{.dp = 1}, ParallelConfig{.dp = 2, .zero = 3}, ParallelConfig{.pp = 2, .dp = 1}}) {
      ModelConfig config = shape_of("gpt2", 4);
      config.precision = precision;
      Cut cut{.parallel = layout};
      cut.optimizer.offload = {.on = true, .directory = folder.path(), .weights = true};
      EXPECT_EQ(memory_difference(config, cut), "") << name_of(cut);
    }
}

TEST(Offload, holds_what_the_counting_device_counts) {
  const support::TemporaryDirectory folder;
  for (const int zero : {0, 1, 3}) {
    ModelConfig config = shape_of("gpt2", 2);
    config.precision = Precision::bf16;
    Cut cut{.parallel = {.dp = 2, .zero = zero}};
    cut.optimizer.offload = {.on = true, .directory = folder.path()};
    EXPECT_EQ(memory_difference(config, cut), "") << zero;
  }
}

// In f32 what ranks add in another order parts by rounding only, until a sign flips; copies stay copies.
TEST_P(InOneBit, over_tensor_parallel_ranks_begins_as_one_rank_does) {
  Cut one{{.dp = 2}}, two{{.tp = 2, .pp = 2, .dp = 2, .sequence = true}};
  for (Cut* cut : {&one, &two}) {
    cut->optimizer = GetParam().config;
    cut->steps = 7;
  }
  const Curve a = train(shape_of("gpt2", 4), one), b = train(shape_of("gpt2", 4), two);
  EXPECT_TRUE(b.copies_agree);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(a.losses[i], b.losses[i], 2e-6);
    EXPECT_NEAR(a.norms[i], b.norms[i], 1e-4 * a.norms[i]);
  }
  for (std::size_t i = 3; i < 7; ++i) EXPECT_NEAR(a.losses[i], b.losses[i], 0.1);
}

// Experts speak with the ranks that hold the same experts.
TEST_P(InOneBit, of_experts_begins_as_unshared_experts_do) {
  Cut one{{.dp = 4}, 1}, two{{.dp = 4, .ep = 2}, 1};
  for (Cut* cut : {&one, &two}) {
    cut->optimizer = GetParam().config;
    cut->steps = 5;
  }
  const Curve a = train(shape_of("mixture", 2), one), b = train(shape_of("mixture", 2), two);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(a.losses[i], b.losses[i], 1e-5);
  for (std::size_t i = 2; i < 5; ++i) EXPECT_NEAR(a.losses[i], b.losses[i], 0.1);
}

TEST_P(InOneBit, holds_what_the_counting_device_counts) {
  Cut cut{{.tp = 2, .dp = 2}};
  cut.optimizer = GetParam().config;
  cut.optimizer.onebit.freeze = 2;
  cut.optimizer.zeroone.freeze = 1;
  EXPECT_EQ(memory_difference(shape_of("gpt2", 2), cut), "");
}

INSTANTIATE_TEST_SUITE_P(Of, InOneBit, ::testing::ValuesIn(one_bit_optimizers),
                         [](const auto& of) { return std::string(of.param.name); });
INSTANTIATE_TEST_SUITE_P(Of, Optimizers, ::testing::ValuesIn(all_optimizers),
                         [](const auto& of) { return std::string(of.param.name); });
