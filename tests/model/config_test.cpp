#include "weft/model/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/base/error.h"
#include "weft/model/gpt/gpt.h"

using namespace weft;
using testing::ThrowsMessage;

namespace {

ModelConfig small() {
  ModelConfig m;
  m.layers = 2;
  m.hidden = 256;
  m.heads = 4;
  m.sequence = 64;
  m.vocabulary = 1000;
  return m;
}

void refused(const ModelConfig& m, const std::string& sentence) {
  const auto completing = [&m] {
    ModelConfig copy = m;
    complete(copy);
  };
  EXPECT_THAT(completing, ThrowsMessage<Error>(sentence));
}

}  // namespace

TEST(ModelConfig, fills_in_what_follows_from_other_sizes) {
  ModelConfig m = small();
  complete(m);
  EXPECT_EQ(m.ffn_hidden, 1024);
  EXPECT_EQ(m.groups, 4);
  EXPECT_EQ(m.channels, 64);
  EXPECT_EQ(m.padded_vocabulary, 1024);
  EXPECT_EQ(m.max_positions, 64);
}

TEST(ModelConfig, cuts_the_width_of_swiglu_down_to_a_multiple_of_64) {
  ModelConfig m = small();
  m.gated = true;
  m.activation = Activation::silu;
  complete(m);
  EXPECT_EQ(m.ffn_hidden, 640);  // 682 cut down, where rounding up would give 704
}

// As Megatron's transformer_config.py has them: 256 is four times 64.
TEST(ModelConfig, scales_scores_and_logits_by_the_width_in_mup) {
  ModelConfig m = small();
  m.mup = {.on = true, .base_hidden = 64};
  complete(m);
  EXPECT_DOUBLE_EQ(width_of(m), 4);
  EXPECT_DOUBLE_EQ(m.mup.output_multiplier, 0.25);
  EXPECT_DOUBLE_EQ(m.softmax_scale, 1.0 / 64);
  ModelConfig other = small();
  other.mup = {.on = true, .output_multiplier = 0.5, .base_channels = 16, .attention_power = 0.5};
  complete(other);
  EXPECT_DOUBLE_EQ(width_of(other), 1);
  EXPECT_DOUBLE_EQ(other.mup.output_multiplier, 0.5);
  EXPECT_DOUBLE_EQ(other.softmax_scale, 4.0 / 8);
  const ModelConfig again = [&] {
    ModelConfig copy = m;
    complete(copy);
    return copy;
  }();
  EXPECT_DOUBLE_EQ(again.softmax_scale, m.softmax_scale);
}

TEST(ModelConfig, begins_matrices_between_widths_smaller_in_mup_and_words_as_ever) {
  ModelConfig m = small();
  m.mup = {.on = true, .base_hidden = 64};
  complete(m);
  const ParameterList list = gpt_parameters(m);
  EXPECT_FLOAT_EQ(list.at("embedding.words").init.spread, 0.02F);
  EXPECT_FLOAT_EQ(list.at("embedding.positions").init.spread, 0.02F);
  EXPECT_FLOAT_EQ(list.at("layers.0.attention.qkv.weight").init.spread, 0.01F);
  EXPECT_FLOAT_EQ(list.at("layers.0.mlp.down.weight").init.spread, 0.005F);  // 0.02 / (sqrt(2 * 2) sqrt(4))
}

TEST(ModelConfig, refuses_shapes_that_no_model_has) {
  ModelConfig m = small();
  m.layers = 0;
  refused(m, "model: the number of layers is not set");
  m = small();
  m.heads = 3;
  refused(m, "model: hidden size 256 is not a multiple of 3 attention heads; set the channels of a head");
  m = small();
  m.groups = 3;
  refused(m, "model: 4 attention heads are not a multiple of 3 query groups");
  m = small();
  m.padded_vocabulary = 999;
  refused(m, "model: the padded vocabulary 999 is smaller than the vocabulary 1000");
  m = small();
  m.max_positions = 63;
  refused(m, "model: 63 positions are fewer than the sequence length 64");
  m = small();
  m.window_layers = {1, 0, 1};
  refused(m, "model: 3 entries say which layers have a window, but there are 2 layers");
}
