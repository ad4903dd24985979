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
  for (const ModelConfig& config : {tiny_gpt2(), tiny_llama(), normed, biased, gpt2_124m()})
    EXPECT_EQ(count_parameters(config).total(), parameters_made(config));
}

TEST(Count, gives_the_flops_of_gpt2_as_megatrons_formula_does) {
  // 6 * (12 * (12 * 768^2) + 768 * 50257) a token and 6 * 1024 * 768 * 12 for the causal half of attention.
  EXPECT_DOUBLE_EQ(training_flops(gpt2_124m(), 1024), 1024 * (6 * (84934656.0 + 38597376.0) + 56623104.0));
}
