#include "weft/model/config.h"

#include "tests/model/small.h"
#include "weft/model/bert/bert.h"
#include "weft/model/gpt/gpt.h"
#include "weft/model/t5/t5.h"

using namespace weft;
using namespace weft::testing;

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

TEST(ModelConfig, begins_what_only_encoders_have_smaller_in_mup_too) {
  ModelConfig m = small();
  m.kind = "bert";
  m.sentence_order = true;
  m.mup = {.on = true, .base_hidden = 64};
  complete(m);
  const ParameterList bert = bert_parameters(m);
  for (const char* name : {"pooler.weight", "sentence_order.weight", "transform.weight"})
    EXPECT_FLOAT_EQ(bert.at(name).init.spread, 0.01F) << name;
  EXPECT_FLOAT_EQ(bert.at("embedding.types").init.spread, 0.02F);
  m = small();
  m.kind = "t5";
  m.decoder_layers = 2;
  m.decoder_sequence = 16;
  m.positions = Positions::relative;
  m.mup = {.on = true, .base_hidden = 64};
  complete(m);
  const ParameterList t5 = t5_parameters(m);
  EXPECT_FLOAT_EQ(t5.at("decoder.layers.0.cross.query.weight").init.spread, 0.01F);
  EXPECT_FLOAT_EQ(t5.at("decoder.layers.1.cross.key_value.weight").init.spread, 0.01F);
  EXPECT_FLOAT_EQ(t5.at("decoder.layers.1.cross.project.weight").init.spread, 0.005F);
  EXPECT_FLOAT_EQ(t5.at("encoder.distances").init.spread, 0.02F);
}

TEST(ModelConfig, refuses_shapes_that_no_model_has) {
  ModelConfig m = small();
  m.layers = 0;
  refused(m, "model: the number of layers is not set");
  m = small();
  m.heads = 3;
  refused(m,
          "model: hidden size 256 is not a multiple of 3 attention heads; set the channels of a head, "
          "{model.channels}");
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

namespace {

ModelConfig latent() {
  ModelConfig m = small();
  m.positions = Positions::rotary;
  m.latent.on = true;
  return m;
}

}  // namespace

TEST(ModelConfig, gives_every_head_of_latent_attention_a_key_of_two_parts) {
  ModelConfig m = latent();
  complete(m);
  complete(m);  // as what is complete already
  EXPECT_EQ(m.groups, 4);
  EXPECT_EQ(m.channels, 128 + 64);
  EXPECT_FALSE(m.qkv_bias);
  EXPECT_TRUE(m.rotary.interleaved);
  EXPECT_EQ(turning_channels(m), 64);
  EXPECT_EQ(value_channels(m), 128);
  const ParameterList list = gpt_parameters(m);
  EXPECT_EQ(list.at("layers.1.attention.query.weight").shape, (Shape{4 * 192, 256}));
  EXPECT_EQ(list.at("layers.1.attention.key_value_down.weight").shape, (Shape{32 + 64, 256}));
  EXPECT_EQ(list.at("layers.1.attention.key_value_up.weight").shape, (Shape{4 * (128 + 128), 32}));
  EXPECT_EQ(list.at("layers.1.attention.project.weight").shape, (Shape{256, 4 * 128}));
  EXPECT_FALSE(list.has("layers.1.attention.key_value_norm.gain"));
}

TEST(ModelConfig, takes_the_width_of_a_head_as_scripts_for_latent_attention_say_it) {
  ModelConfig m = latent();
  m.channels = 128;
  complete(m);
  EXPECT_EQ(m.channels, 192);
}

TEST(ModelConfig, refuses_what_latent_attention_does_not_have) {
  const auto with = [](auto change) {
    ModelConfig m = latent();
    change(m);
    return m;
  };
  refused(with([](ModelConfig& m) { m.groups = 2; }),
          "model: latent attention has a key for every head, and {model.groups} is 2");
  refused(with([](ModelConfig& m) { m.channels = 100; }),
          "model: heads of latent attention are 128 + 64 channels wide and {model.channels} is 100; leave it "
          "out");
  refused(
      with([](ModelConfig& m) { m.rotary.percent = 0.5; }),
      "model: {model.latent.turned_channels} says how many channels turn: leave {model.rotary.percent} out");
  refused(with([](ModelConfig& m) { m.latent.turned_channels = 7; }),
          "model: rotary positions turn channels in pairs, and {model.latent.turned_channels} is 7");
  refused(with([](ModelConfig& m) { m.linear_bias = false; }),
          "model: latent attention has no biases of queries, keys and values");
  refused(with([](ModelConfig& m) { m.mup.on = true; }),
          "model: latent attention has no scale by width: leave {model.mup.on} out");
  refused(with([](ModelConfig& m) { m.kind = "bert"; }),
          "model: bert has no latent attention: leave {model.latent.on} out");
  refused(with([](ModelConfig& m) {
            m.latent.on = false;
            m.latent.rank = 8;
          }),
          "model: sizes of latent attention are given, but it is not on: add {model.latent.on}");
}

TEST(ModelConfig, knows_which_layers_remember) {
  ModelConfig m = small();
  m.layers = 5;
  m.activation = Activation::silu;
  m.delta = {.on = true, .attends_every = 2};
  complete(m);
  EXPECT_EQ(m.delta.layers, (std::vector<int>{1, 0, 1, 0, 1}));
  EXPECT_EQ(m.delta.layers_with(), 3);
  const ParameterList list = gpt_parameters(m);
  EXPECT_EQ(list.at("layers.2.delta.in.weight").shape,
            (Shape{16 * (2 * 128 + 2 * 2 * 128 + 2 * 2), m.hidden}));
  EXPECT_EQ(list.at("layers.2.delta.filter").shape, (Shape{16, 2 * 128 + 2 * 128, 4}));
  EXPECT_EQ(list.at("layers.2.delta.speed").shape, (Shape{32}));
  EXPECT_FALSE(list.has("layers.2.attention.qkv.weight"));
  EXPECT_FALSE(list.has("layers.1.delta.in.weight"));
}

TEST(ModelConfig, refuses_what_layers_that_remember_do_not_have) {
  const auto with = [](auto change) {
    ModelConfig m = small();
    m.activation = Activation::silu;
    m.delta = {.on = true, .attends_every = 2};
    change(m);
    return m;
  };
  refused(with([](ModelConfig& m) { m.delta.value_heads = 40; }),
          "model: {model.delta.value_heads} 40 is not a multiple of {model.delta.key_heads} 16");
  refused(with([](ModelConfig& m) { m.activation = Activation::gelu; }),
          "model: filters and gates of layers that remember are silu, and {model.activation} is another");
  refused(with([](ModelConfig& m) { m.mup.on = true; }),
          "model: layers that remember have no scale by width: leave {model.mup.on} out");
  refused(with([](ModelConfig& m) { m.delta.attends_every = 0; }),
          "model: nothing says which layers remember and which attend: add {model.delta.attends_every}");
  refused(with([](ModelConfig& m) { m.delta.layers = {1}; }),
          text("model: 1 entries say which layers remember, but there are ", small().layers, " layers"));
  refused(with([](ModelConfig& m) { m.delta.attends_every = 1; }),
          "model: no layer remembers, all attend: leave {model.delta.on} out");
  refused(with([](ModelConfig& m) { m.kind = "bert"; }),
          "model: bert has no layers that remember: leave {model.delta.on} out");
}

TEST(ModelConfig, refuses_gates_where_no_heads_have_them) {
  ModelConfig m = small();
  m.attention_gate = true;
  m.kind = "bert";
  refused(m, "model: bert has no gates of what heads give: leave {model.attention_gate} out");
  m = latent();
  m.attention_gate = true;
  refused(m, "model: latent attention has no gates of what heads give: leave {model.attention_gate} out");
}

TEST(ModelConfig, guesses_further_tokens_in_a_gpt_only) {
  ModelConfig m = small();
  m.ahead.depths = 2;
  complete(m);
  const ParameterList list = gpt_parameters(m);
  EXPECT_EQ(list.at("ahead.layers.1.join.weight").shape, (Shape{256, 512}));
  EXPECT_TRUE(list.has("ahead.layers.1.attention.qkv.weight"));
  EXPECT_FALSE(list.has("ahead.layers.2.join.weight"));
  m.ahead.repeated = true;
  EXPECT_TRUE(gpt_parameters(m).has("ahead.layers.0.join.weight"));
  EXPECT_FALSE(gpt_parameters(m).has("ahead.layers.1.join.weight"));
  m.ahead.depths = 0;
  refused(
      m,
      "model: {model.ahead.repeated} is about further tokens, and {model.ahead.depths} is 0: say how many");
  m.ahead = {.depths = 2};
  m.kind = "bert";
  refused(m, "model: bert guesses no further tokens: leave {model.ahead.depths} out");
}
