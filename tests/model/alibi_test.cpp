// Scores that fall with distances: whose slopes they are, and what is refused.
#include "weft/model/alibi.h"

#include <cmath>

#include "tests/model/small.h"
#include "tests/support/placed.h"
#include "weft/backend/cpu/device.h"
#include "weft/tensor/host.h"

using namespace weft;
using namespace weft::testing;

namespace {

std::vector<float> slopes_of(int heads, double power = 8) {
  ModelConfig config;
  config.heads = heads;
  config.alibi.power = power;
  return alibi_slopes(config);
}

ModelConfig falling_with(const std::function<void(ModelConfig&)>& change) {
  return small_with([&](ModelConfig& m) {
    m.positions = Positions::alibi;
    change(m);
  });
}

}  // namespace

TEST(Alibi, halves_slopes_from_head_to_head_of_eight) {
  EXPECT_EQ(slopes_of(8),
            (std::vector{0.5F, 0.25F, 0.125F, 0.0625F, 0.03125F, 0.015625F, 0.0078125F, 0.00390625F}));
  EXPECT_EQ(slopes_of(2, 2), (std::vector{0.5F, 0.25F}));
}

// Twelve heads: those of eight, and of sixteen the first, third, fifth and seventh.
TEST(Alibi, takes_others_from_the_next_power_of_two) {
  const std::vector<float> slopes = slopes_of(12), eight = slopes_of(8), sixteen = slopes_of(16);
  ASSERT_EQ(slopes.size(), 12U);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(slopes[i], eight[i]);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(slopes[8 + i], sixteen[2 * i]);
}

TEST(Alibi, falls_on_both_sides_of_a_query) {
  ModelConfig config = tiny_falling();
  const std::vector<float> slopes = alibi_slopes(config);
  EXPECT_FLOAT_EQ(slopes[0], float(std::exp2(-2.0 / config.heads) / std::sqrt(double(config.channels))));
  const auto device = open_device("cpu", {.threads = 1});
  const Tensor biases = alibi_biases(config, {1, 3}, *device);
  const std::int64_t s = config.sequence;
  ASSERT_EQ(biases.shape(), (Shape{2, 2 * s - 1}));
  const std::vector<float> found = to_host<float>(biases);
  for (std::int64_t head = 0; head < 2; ++head)
    for (std::int64_t distance = 1 - s; distance < s; ++distance)
      EXPECT_FLOAT_EQ(found[std::size_t(head * (2 * s - 1) + distance + s - 1)],
                      -slopes[std::size_t(head + 1)] * float(std::abs(distance)));
}

TEST(Alibi, is_refused_where_places_are_counted_otherwise) {
  refused(falling_with([](ModelConfig& m) { m.kind = "bert"; }),
          "model: bert has no scores that fall with distances: {model.positions} alibi");
  refused(falling_with([](ModelConfig& m) { m.latent.on = true; }),
          "model: latent attention turns by places: leave {model.positions} alibi out");
  refused(falling_with([](ModelConfig& m) { m.scores.cap = 2; }),
          "model: scores that fall with distances, {model.positions} alibi, have no {model.scores.cap}");
  refused(
      falling_with([](ModelConfig& m) { m.token_drop.layers = {1}; }),
      "model: {model.positions} alibi counts the tokens between two, and {model.token_drop.layers} leaves "
      "some out: leave one out");
}

TEST(EmbeddingNorm, is_refused_where_embeddings_are_read_as_they_are) {
  const auto normed = [](const std::function<void(ModelConfig&)>& change) {
    return small_with([&](ModelConfig& m) {
      m.embedding_norm = true;
      change(m);
    });
  };
  refused(normed([](ModelConfig& m) { m.kind = "bert"; }),
          "model: bert has embeddings as they are: leave {model.embedding_norm} out");
  refused(normed([](ModelConfig& m) { m.ahead.depths = 1; }),
          "model: {model.ahead.depths} reads embeddings as they are: leave it or {model.embedding_norm} out");
  refused(normed([](ModelConfig& m) { m.residual_in_f32 = true; }),
          "model: {model.embedding_norm} gives what layers add to in the type of the weights: leave it or "
          "{model.residual_in_f32} out");
}
