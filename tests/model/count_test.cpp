#include "weft/model/count.h"

#include <gtest/gtest.h>

#include "tests/support/tiny.h"

using namespace weft;
using namespace weft::testing;

namespace {

ModelConfig gpt2_124m() {
  ModelConfig config;
  config.layers = 12;
  config.hidden = 768;
  config.heads = 12;
  config.sequence = config.max_positions = 1024;
  config.vocabulary = 50257;
  complete(config);
  return config;
}

std::int64_t parameters_made(const ModelConfig& config) {
  const auto device = open_device("meta");
  TinyModel model(config, *device);
  std::int64_t made = 0;
  model.stage().each_parameter([&](Parameter& p) {
    for (const Piece& piece : p.pieces) made += piece.where.local.elements();
  });
  return made;
}

}  // namespace

TEST(Count, knows_the_parameters_of_gpt2) { EXPECT_EQ(count_parameters(gpt2_124m()).total(), 124439808); }

TEST(Count, agrees_with_the_parameters_that_are_made) {
  ModelConfig normed = tiny_llama();
  normed.qk_norm = true;
  ModelConfig biased = tiny_llama();
  biased.linear_bias = biased.qkv_bias = true;
  for (const ModelConfig& config :
       {tiny_gpt2(), tiny_llama(), normed, biased, tiny_latent(), tiny_ahead(tiny_gpt2()), tiny_mixture(),
        tiny_ahead(tiny_mixture()), tiny_delta(), tiny_hybrid("M*-EG"), gpt2_124m()})
    EXPECT_EQ(count_parameters(config).total(), parameters_made(config));
}

TEST(Count, gives_the_flops_of_gpt2_as_megatrons_formula_does) {
  // 6 * (12 * (12 * 768^2) + 768 * 50257) a token and 6 * 1024 * 768 * 12 for the causal half of attention.
  EXPECT_DOUBLE_EQ(training_flops(gpt2_124m(), 1024), 1024 * (6 * (84934656.0 + 38597376.0) + 56623104.0));
}

// A token's products: queries by a latent 8 (16 + 40 + 1), keys and values 12 (16 + 24 + 24 + 1) + 16 4, the
// output 24 16, the MLP 3 16 24; the causal half of 40 channels of queries and 24 of values for every pair.
TEST(Count, gives_the_flops_of_latent_attention_as_megatrons_formula_does) {
  const double products = 8 * 57 + 12 * 65 + 64 + 384 + 1152;
  EXPECT_DOUBLE_EQ(training_flops(tiny_latent(), 8), 8 * 6 * (2 * products + 16 * 29) + 6 * 64 * 32 * 2);
}

// A token's products where a layer remembers: 16 4 36 in, 3 taps for 4 22 channels, four times 8 memories' 5
// by 5, 40 16 out; where the other attends with gates 16 (2 16 + 2 8) and 16 16; two MLPs 3 16 24.
TEST(Count, gives_the_flops_of_layers_that_remember_as_megatrons_formula_does) {
  const double remembers = 2304 + 264 + 4 * 40 * 5 + 640, attends = 768 + 256;
  EXPECT_DOUBLE_EQ(training_flops(tiny_delta(), 8),
                   8 * 6 * (remembers + attends + 2 * 1152 + 16 * 29) + 6 * 64 * 16);
}

// A token's products in a state space: 16 4 (2 6 + 2 10 + 2) in, three and a half times 8 memories' 5 by 6,
// 40 16 out; where the other attends 16 (16 + 2 16) and 16 16, causal; an MLP 3 16 24.
TEST(Count, gives_the_flops_of_state_spaces_as_megatrons_formula_does) {
  const double state = 2176 + 3.5 * 40 * 6 + 640, attends = 768 + 256;
  EXPECT_DOUBLE_EQ(training_flops(tiny_hybrid("M*-M"), 8),
                   8 * 6 * (2 * state + attends + 1152 + 16 * 29) + 6 * 64 * 16);
}

// 16 by 29 for each word that is not guessed.
TEST(Count, leaves_out_the_logits_that_a_bert_does_not_make) {
  ModelConfig all = tiny_bert(), few = all;
  few.most_guesses = 3;
  EXPECT_DOUBLE_EQ(training_flops(all, 8) - training_flops(few, 8), 6.0 * 5 * 16 * 29);
  EXPECT_DOUBLE_EQ(training_flops(few, 1), training_flops(all, 1));
}

// Two more layers and outputs, and of each depth three norms and a product of 16 by 32.
TEST(Count, gives_the_flops_of_further_tokens_as_megatrons_formula_does) {
  const ModelConfig plain = tiny_gpt2(), ahead = tiny_ahead(plain);
  const double layers = training_flops(plain, 8) - 8 * 6 * 16 * 29;
  EXPECT_DOUBLE_EQ(training_flops(ahead, 8), 2 * layers + 8 * 6 * (2 * (48 + 512) + 3 * 16 * 29));
}

// Three of eight experts of two layers, each of 16 (2 + 1) 16 weights.
TEST(Count, knows_what_a_token_does_not_go_through) {
  const ParameterCount count = count_parameters(tiny_mixture());
  EXPECT_EQ(count.idle, 2 * 5 * 3 * 16 * 16);
  EXPECT_EQ(count.active() + count.idle, count.total());
  EXPECT_EQ(count_parameters(tiny_llama()).idle, 0);
}

// An expert's rows and two tensors of its width, in place of the two of an MLP's; of every other layer here.
TEST(Count, bounds_the_activations_of_the_experts_that_a_token_goes_through) {
  ModelConfig plain = tiny_llama(), mixture = tiny_mixture();
  plain.groups = mixture.groups;
  mixture.experts.layers = {0, 1};
  const double tokens = 2 * 8, in_half = 2;
  EXPECT_DOUBLE_EQ(activation_bound(mixture, 2) - activation_bound(plain, 2),
                   in_half * tokens * (4 * (4 * 16 - 24) + 2 * 3 * 16));
}

// Of a layer: 3 experts of 16 and the shared one of 16 in the place of an MLP of 24.
TEST(Count, gives_the_flops_of_the_experts_that_a_token_goes_through) {
  const ModelConfig mixture = tiny_mixture(), plain = tiny_llama();
  EXPECT_DOUBLE_EQ(training_flops(mixture, 1) - training_flops(plain, 1), 6.0 * 2 * 3 * 16 * (4 * 16 - 24));
}
