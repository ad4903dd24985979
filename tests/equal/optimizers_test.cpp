// Optimizers under layouts: what they need of whole tensors, they have whoever holds the parts.
#include <gtest/gtest.h>

#include "tests/equal/run.h"
#include "tests/support/sanitized.h"

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

TEST_P(Optimizers, hold_what_the_counting_device_counts) {
  for (const Cut& cut : {Cut{{.dp = 1}}, Cut{{.tp = 2, .dp = 2, .zero = 1}}}) {
    Cut mine = cut;
    mine.optimizer = GetParam().config;
    EXPECT_EQ(memory_difference(shape_of("gpt2", 2), mine), "");
  }
}

// In f32 what ranks add in another order parts by rounding only, until a sign flips; copies stay copies.
TEST(OneBitAdam, over_tensor_parallel_ranks_begins_as_one_rank_does) {
  Cut one{{.dp = 2}}, two{{.tp = 2, .pp = 2, .dp = 2}};
  for (Cut* cut : {&one, &two}) {
    cut->optimizer = {.kind = OptimizerKind::onebitadam, .onebit = {.freeze = 3}};
    cut->steps = 5;
  }
  const Curve a = train(shape_of("gpt2", 4), one), b = train(shape_of("gpt2", 4), two);
  EXPECT_TRUE(b.copies_agree);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(a.losses[i], b.losses[i], 2e-6);
    EXPECT_NEAR(a.norms[i], b.norms[i], 1e-4 * a.norms[i]);
  }
  for (std::size_t i = 3; i < 5; ++i) EXPECT_NEAR(a.losses[i], b.losses[i], 0.1);
}

TEST(OneBitAdam, holds_what_the_counting_device_counts) {
  Cut cut{{.tp = 2, .dp = 2}};
  cut.optimizer = {.kind = OptimizerKind::onebitadam, .onebit = {.freeze = 2}};
  EXPECT_EQ(memory_difference(shape_of("gpt2", 2), cut), "");
}

INSTANTIATE_TEST_SUITE_P(Of, Optimizers, ::testing::ValuesIn(all_optimizers),
                         [](const auto& of) { return std::string(of.param.name); });
