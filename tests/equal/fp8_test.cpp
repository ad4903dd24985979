// Products in eight bits under layouts, schedules and recomputation; and what they cost a training.
#include <gtest/gtest.h>

#include "tests/equal/run.h"
#include "tests/support/sanitized.h"

using namespace weft;
using namespace weft::testing;

namespace {

ModelConfig in_fp8(const char* name, Fp8Recipe recipe, int layers = 2) {
  ModelConfig config = shape_of(name, layers);
  config.fp8 = {.format = Fp8Format::hybrid, .recipe = recipe};
  if (recipe == Fp8Recipe::delayed) {
    config.fp8.history = 4;
    config.fp8.amax = AmaxChoice::max;
  }
  return config;
}

constexpr std::array recipes{Fp8Recipe::delayed, Fp8Recipe::tensorwise, Fp8Recipe::blockwise,
                             Fp8Recipe::mxfp8};

}  // namespace

// A last bit of f32 may put an element on the other side of a tie, and then it is another code, 2^-4 of
// itself off; later steps are then another training. Tensorwise scales are of the part that a rank holds, so
// codes are others from the first step on, and so are those of blocks that a layout cuts.
TEST(Fp8, layouts_are_one_rank_but_for_rounding) {
  for (const Fp8Recipe recipe : recipes)
    for (const char* name : {"gpt2", "llama", "mixture"}) {
      SCOPED_TRACE(std::string(name) + " " + std::string(words(recipe)[std::size_t(recipe)]));
      const ModelConfig config = in_fp8(name, recipe);
      Cut cut{.parallel = {.dp = 1}, .micro_batch = 2, .steps = rounds(6)};
      const Curve alone = train(config, cut);
      std::vector<ParallelConfig> layouts{{.tp = 2, .dp = 1},
                                          {.tp = 2, .dp = 2, .sequence = true, .zero = 1},
                                          {.cp = 2, .dp = 1},
                                          {.dp = 2, .zero = 3},
                                          {.pp = 2, .dp = 2}};
      if (config.experts.count > 0) layouts.push_back({.dp = 2, .ep = 2});
      for (const ParallelConfig& parallel : layouts) {
        cut.parallel = parallel;
        const Curve found = train(config, cut);
        EXPECT_EQ(difference(found, alone, {.loss = 5e-2, .norm = 2e-1}), "") << name_of(cut);
        EXPECT_NEAR(found.losses.front(), alone.losses.front(), recipe == Fp8Recipe::delayed ? 2e-3 : 3e-2);
        EXPECT_TRUE(found.copies_agree);
      }
    }
}

/// Widths of whole blocks whatever of these layouts cuts them, and as many tokens.
ModelConfig of_whole_blocks(Fp8Recipe recipe) {
  ModelConfig config = in_fp8("llama", recipe);
  config.hidden = 256;
  config.heads = config.groups = 2;
  config.channels = 128;
  config.ffn_hidden = 512;
  config.sequence = 256;
  config.hidden_dropout = config.attention_dropout = 0;
  return config;
}

// What a rank rounds are then blocks of what one rank would, and the first step parts by the order of sums
// alone.
TEST(Fp8, blocks_that_no_layout_cuts_are_those_of_one_rank) {
  std::vector<Curve> of_one_rank;
  for (const Fp8Recipe recipe : {Fp8Recipe::blockwise, Fp8Recipe::mxfp8}) {
    const ModelConfig config = of_whole_blocks(recipe);
    Cut cut{.parallel = {.dp = 1}, .micro_batch = 2, .steps = 1};
    const Curve alone = train(config, cut);
    const std::vector<ParallelConfig> layouts{{.tp = 2, .dp = 1},
                                              {.tp = 2, .dp = 1, .sequence = true, .zero = 1},
                                              {.cp = 2, .dp = 1},
                                              {.dp = 2, .zero = 3},
                                              {.pp = 2, .dp = 1}};
    for (const ParallelConfig& parallel : some_of(layouts, recipe == Fp8Recipe::mxfp8 ? 8 : 3)) {
      cut.parallel = parallel;
      const Curve found = train(config, cut);
      EXPECT_NEAR(found.losses.front(), alone.losses.front(), 1e-4) << name_of(cut);
      EXPECT_NEAR(found.norms.front() / alone.norms.front(), 1, 1e-3) << name_of(cut);
      EXPECT_EQ(difference(found, alone, {.loss = 3e-2, .norm = 5e-2}), "") << name_of(cut);
    }
    of_one_rank.push_back(alone);
  }
  EXPECT_NE(of_one_rank[0].norms, of_one_rank[1].norms);  // narrow models may not show which blocks they have
}

TEST(Fp8, schedules_and_recomputation_change_no_bit) {
  for (const Fp8Recipe recipe : recipes) {
    ModelConfig config = in_fp8("llama", recipe, 4);
    const Cut stages{.parallel = {.pp = 2, .dp = 1}, .micro_batch = 1, .steps = rounds(4)};
    const Curve plain = bits_of(config, stages);
    Cut zero_bubble = stages;
    zero_bubble.parallel.schedule = "zb-h1";
    EXPECT_EQ(bits_of(config, zero_bubble).losses, plain.losses);
    config.recompute.what = Recompute::full;
    EXPECT_EQ(bits_of(config, stages).losses, plain.losses);
  }
}

TEST(Fp8, every_setting_is_another_training) {
  const Cut cut{.parallel = {.dp = 1}, .micro_batch = 4, .steps = 6};
  const ModelConfig usual = in_fp8("llama", Fp8Recipe::delayed, 3);
  const ModelConfig current = in_fp8("llama", Fp8Recipe::tensorwise, 3);
  std::vector<ModelConfig> all{shape_of("llama", 3), usual, current};
  all.push_back(in_fp8("llama", Fp8Recipe::blockwise, 3));
  const auto with = [&](const ModelConfig& from, auto change) {
    all.push_back(from);
    change(all.back().fp8);
  };
  with(usual, [](Fp8Config& f) { f.format = Fp8Format::e4m3; });
  with(usual, [](Fp8Config& f) { f.margin = 4; });
  with(usual, [](Fp8Config& f) { f.amax = AmaxChoice::most_recent; });
  with(usual, [](Fp8Config& f) { f.history = 2; });
  with(usual, [](Fp8Config& f) { f.weight_grads = false; });
  with(current, [](Fp8Config& f) { f.weight_grads = false; });
  with(current, [](Fp8Config& f) { f.ends_in_bf16 = true; });
  with(current, [](Fp8Config& f) { f.ends_in_bf16 = true, f.first_layers = 0; });
  with(current, [](Fp8Config& f) { f.ends_in_bf16 = true, f.last_layers = 0; });
  std::vector<Curve> curves;
  for (const ModelConfig& config : all) {
    curves.push_back(train(config, cut));
    for (std::size_t i = 0; i + 1 < curves.size(); ++i)
      EXPECT_NE(curves[i].losses, curves.back().losses) << i << " " << curves.size() - 1;
  }
}

TEST(Fp8, needs_the_memory_that_is_planned) {
  for (const Fp8Recipe recipe : recipes)
    for (const char* name : {"gpt2", "latent"})
      EXPECT_EQ(memory_difference(in_fp8(name, recipe),
                                  {.parallel = {.tp = 2, .dp = 2, .zero = 1}, .micro_batch = 2}),
                "")
          << name;
}

TEST(Fp8, every_family_steps) {
  for (const Fp8Recipe recipe : recipes)
    for (const char* name : {"latent", "bert", "t5"}) {
      const Curve found =
          train(in_fp8(name, recipe), {.parallel = {.dp = 1}, .micro_batch = 4, .steps = rounds(20)});
      EXPECT_EQ(found.skipped, 0) << name;
      if (!sanitized) {
        EXPECT_LT(found.losses.back(), found.losses.front()) << name;
      }
    }
}

TEST(Fp8, a_model_learns_as_well_as_in_bf16) {
  if (sanitized) GTEST_SKIP() << "what 300 steps come to is for a plain build to see";
  ModelConfig plain = shape_of("llama");
  plain.precision = Precision::bf16;
  const Cut cut{.parallel = {.dp = 1}, .micro_batch = 8, .steps = 300};
  const double expected = train(plain, cut).evaluations.front();
  for (const Fp8Recipe recipe : recipes) {
    ModelConfig config = in_fp8("llama", recipe);
    config.precision = Precision::bf16;
    EXPECT_NEAR(train(config, cut).evaluations.front(), expected, 0.02 * expected);
  }
}
