// What a step does to weights of queries and keys, and what the next one sees of it.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/tiny.h"
#include "weft/comm/solo.h"
#include "weft/train/replica.h"

using namespace weft;
using namespace weft::testing;

namespace {

/// A model of one layer, so that what attention reads is the same in every step; nothing but the clip moves
/// its weights.
class OneLayer {
 public:
  explicit OneLayer(const ModelConfig& model, QkClipConfig clip = {})
      : batch_(tiny_batch(*device_, model, 2)),
        replica({.model = model, .optimizer = {.qk_clip = clip}, .greatest_scores = true, .seed = 3},
                {*device_, mesh_}) {}
  StepReport step() { return replica.step({&batch_, 1}, {.seed = 3, .step = 1, .rate = 0}); }
  double greatest() { return step().greatest_score.value(); }

 private:
  std::unique_ptr<Device> device_ = open_device("cpu", {.threads = 1});
  SoloCommunicator solo_;
  ProcessMesh mesh_{ParallelLayout({}), solo_};
  Batch batch_;

 public:
  Replica replica;
};

ModelConfig one_layer(ModelConfig config) {
  config.layers = 1;
  config.init.std = 0.5;
  complete(config);
  return config;
}

ModelConfig of_latents() {
  ModelConfig config = tiny_latent();
  config.experts = {};
  return one_layer(config);
}

}  // namespace

TEST(QkClipOfAStep, brings_the_next_ones_scores_down_to_the_threshold) {
  ModelConfig plain_queries = of_latents();
  plain_queries.latent.query_rank = 0;
  ModelConfig gated = one_layer(tiny_llama());
  gated.attention_gate = true;
  for (const ModelConfig& model : {one_layer(tiny_llama()), of_latents(), plain_queries, gated}) {
    const double free = OneLayer(model).greatest();
    ASSERT_GT(free, 0.2);
    OneLayer clipped(model, {.on = true, .alpha = 0.3, .threshold = free / 3});
    EXPECT_EQ(clipped.greatest(), free);
    EXPECT_NEAR(clipped.greatest(), free / 3, 2e-6 * free);
    EXPECT_NEAR(clipped.greatest(), free / 3, 2e-6 * free);
  }
}

TEST(QkClipOfAStep, is_not_made_of_scores_that_are_no_numbers) {
  OneLayer layer(one_layer(tiny_llama()), {.on = true, .threshold = 0.1});
  std::vector<double> before;
  layer.replica.each_parameter([&](Parameter& p) {
    if (p.name != "layers.0.attention.qkv.weight") return;
    // A query of the last token: scores beyond it are hidden, and its own come to no loss.
    std::vector<float> values = to_host<float>(p.value);
    values[0] = std::numeric_limits<float>::infinity();
    copy_to<float>(p.value, values);
    before = numbers(p.value);
  });
  const StepReport report = layer.step();
  EXPECT_FALSE(report.applied);
  EXPECT_FALSE(report.scores_finite);
  EXPECT_EQ(*report.greatest_score, std::numeric_limits<double>::infinity());
  layer.replica.each_parameter([&](Parameter& p) {
    if (p.name == "layers.0.attention.qkv.weight") {
      EXPECT_EQ(numbers(p.value), before);
    }
  });
}

TEST(QkClipOfAStep, is_told_where_nobody_clips) {
  const ModelConfig model = one_layer(tiny_llama());
  OneLayer layer(model);
  EXPECT_EQ(layer.greatest(), layer.greatest());
}
