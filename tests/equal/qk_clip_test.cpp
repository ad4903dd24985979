// Weights that follow the greatest scores, under every kind of cut: all ranks of a head see the same maximum,
// and whoever keeps its rows scales them.
#include <gtest/gtest.h>

#include "tests/equal/few_steps.h"
#include "tests/support/temporary.h"

using namespace weft;
using namespace weft::testing;

namespace {

/// Layouts in which heads, sequences, layers, samples and states are cut; four ranks share two key groups.
std::vector<Cut> clip_cuts() {
  return {{{.tp = 2, .dp = 1}},
          {{.tp = 4, .dp = 1, .sequence = true}},
          {{.cp = 2, .dp = 1}},
          {{.cp = 2, .dp = 1, .context = ContextForm::heads}},
          {{.cp = 4, .dp = 1, .context = ContextForm::gather}},
          {{.pp = 2, .dp = 1, .schedule = "zb-h1"}},
          {{.dp = 4, .zero = 1, .bucket_elements = 700}},
          {{.dp = 2, .zero = 2}},
          {{.dp = 4, .zero = 3, .shard_groups = 2}},
          {{.dp = 4, .zero = 3, .near_ranks = 2}},
          {{.tp = 2, .pp = 2, .cp = 2, .dp = 2, .sequence = true}, 1},
          {{.tp = 2, .cp = 2, .dp = 2, .sequence = true, .zero = 3}, 1}};
}

constexpr const char* clipped_models[] = {"llama", "latent"};

ModelConfig clipped_shape(const std::string& name, int layers) {
  ModelConfig config = shape_of(name, layers);
  if (name == "llama") config.groups = 2;
  return config;
}

Cut clipping(Cut cut, double threshold = 0.02) {
  // The first step has nothing to show, and a mistake of the last one would not be seen.
  cut.steps = 4;
  cut.optimizer.qk_clip = {.on = true, .alpha = 0.3, .threshold = threshold};
  return cut;
}

Curve clipped_alone(const ModelConfig& config, bool exact) {
  Cut cut = clipping({.parallel = {.dp = 1}, .micro_batch = exact ? 1 : 8});
  cut.exact = exact;
  return train(config, cut);
}

}  // namespace

TEST(QkClip, has_the_bits_of_one_rank_in_exact_mode) {
  for (const char* name : clipped_models)
    for (const Precision precision : {Precision::f32, Precision::bf16}) {
      ModelConfig config = clipped_shape(name, 4);
      config.precision = precision;
      const Curve one = clipped_alone(config, true);
      for (Cut cut : some_of(clip_cuts(), 6)) {
        cut = clipping(cut);
        cut.exact = true;
        expect_same_bits(train(config, cut), one, std::string(name) + " " + name_of(cut));
      }
    }
}

TEST(QkClip, trains_as_on_one_rank) {
  for (const char* name : clipped_models) {
    const ModelConfig config = clipped_shape(name, 4);
    const Curve one = clipped_alone(config, false);
    for (const Cut& cut : some_of(clip_cuts(), 5))
      EXPECT_EQ(difference(train(config, clipping(cut)), one, rounding_of(config, cut)), "") << name_of(cut);
  }
}

TEST(QkClip, changes_what_is_trained_where_scores_are_above_the_threshold_alone) {
  for (const char* name : clipped_models) {
    const ModelConfig config = clipped_shape(name, 2);
    const auto losses = [&](const Cut& cut) { return train(config, cut).losses; };
    const Cut plain{.parallel = {.dp = 1}, .steps = 4};
    EXPECT_NE(losses(clipping(plain)), losses(plain));
    EXPECT_EQ(losses(clipping(plain, 1e6)), losses(plain));
  }
}

TEST(QkClip, has_the_bits_of_layers_that_are_not_computed_again) {
  ModelConfig config = clipped_shape("llama", 4);
  const Cut cut = clipping({.parallel = {.pp = 2, .dp = 1}});
  const std::vector<double> kept = train(config, cut).losses;
  config.recompute = {.what = Recompute::full, .layers = 1};
  EXPECT_EQ(train(config, cut).losses, kept);
}

TEST(QkClip, has_the_same_bits_where_states_and_weights_lie_in_files) {
  const support::TemporaryDirectory folder;
  for (const Precision precision : {Precision::f32, Precision::bf16})
    for (const int zero : {0, 3}) {
      ModelConfig config = clipped_shape("llama", 2);
      config.precision = precision;
      Cut cut = clipping({.parallel = {.dp = 2, .zero = zero}});
      const Curve in_memory = train(config, cut);
      for (const bool weights : {false, true}) {
        cut.optimizer.offload = {.on = true, .directory = folder.path(), .weights = weights};
        expect_same_bits(train(config, cut), in_memory, name_of(cut));
      }
    }
}

TEST(QkClip, is_the_same_under_every_rule_whether_states_are_cut_or_not) {
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::lion, OptimizerKind::lamb,
                                   OptimizerKind::muon, OptimizerKind::onebitadam}) {
    const ModelConfig config = clipped_shape("llama", 2);
    Cut whole = clipping({.parallel = {.dp = 2}});
    whole.optimizer.kind = kind;
    const Curve curve = train(config, whole);
    Cut plain = whole;
    plain.optimizer.qk_clip.on = false;
    EXPECT_NE(train(config, plain).losses, curve.losses);
    EXPECT_TRUE(curve.copies_agree);
    if (kind == OptimizerKind::onebitadam) continue;
    Cut cut = whole;
    cut.parallel.zero = 1;
    expect_same_bits(train(config, cut), curve, name_of(cut));
  }
}

TEST(QkClip, holds_what_the_counting_device_counts) {
  for (const char* name : clipped_models)
    for (const Cut& cut : {clip_cuts()[2], clip_cuts()[3], clip_cuts()[11]})
      EXPECT_EQ(memory_difference(clipped_shape(name, 4), clipping(cut)), "") << name_of(cut);
}
