// Caps, chunks and queries that grow: what a model is made of, and what is refused.
#include <cmath>

#include "tests/model/small.h"
#include "tests/support/placed.h"
#include "weft/backend/cpu/device.h"
#include "weft/model/rotary.h"
#include "weft/tensor/host.h"

using namespace weft;
using namespace weft::testing;

TEST(Scores, of_other_families_are_as_they_are) {
  const auto bert = [](const std::function<void(ModelConfig&)>& change) {
    return small_with([&](ModelConfig& m) {
      m.kind = "bert";
      change(m);
    });
  };
  for (const auto& wrong :
       {bert([](ModelConfig& m) { m.scores.cap = 1; }), bert([](ModelConfig& m) { m.scores.chunk = 4; }),
        bert([](ModelConfig& m) { m.scores.growth_every = 4; })})
    refused(wrong,
            "model: bert sees its whole text, and scores as they are: leave {model.scores.cap}, "
            "{model.scores.chunk} and {model.scores.growth_every} out");
  refused(bert([](ModelConfig& m) { m.output_cap = 1; }),
          "model: bert has logits as they are: leave {model.output_cap} out");
}

TEST(Scores, are_refused_where_two_things_say_what_a_query_sees) {
  refused(small_with([](ModelConfig& m) { m.scores.chunk = m.window = 4; }),
          "model: {model.scores.chunk} and {model.window} both say what a query sees: leave one out");
  refused(
      small_with([](ModelConfig& m) {
        m.scores.chunk = 4;
        m.token_drop.layers = {1};
      }),
      "model: {model.scores.chunk} is of places in a text, and {model.token_drop.layers} leaves some out: "
      "leave one out");
}

TEST(Scores, grow_where_queries_do_not_turn) {
  refused(small_with([](ModelConfig& m) {
            m.latent.on = true;
            m.scores.growth_every = 4;
          }),
          "model: {model.scores.growth_every} is of layers without rotary positions, which latent attention "
          "always has");
  refused(small_with([](ModelConfig& m) {
            m.channels = 3;
            m.scores.growth_every = 4;
          }),
          "model: {model.scores.growth_every} wants heads of an even number of channels, not 3");
}

// 1 + growth log(1 + floor((place + 1) / every)), of both channels of each pair.
TEST(Scores, grow_by_the_logarithm_of_whole_times) {
  ModelConfig config = tiny_chunks();
  config.scores.growth_every = 3;
  const auto device = open_device("cpu", {.threads = 1});
  const Tensor turns = growth_of_queries(config, *device);
  ASSERT_EQ(turns.shape(), (Shape{config.sequence, config.channels / 2, 2}));
  const std::vector<float> found = to_host<float>(turns);
  for (std::int64_t at = 0; at < config.sequence; ++at)
    for (std::int64_t pair = 0; pair < config.channels / 2; ++pair) {
      const auto first = std::size_t((at * (config.channels / 2) + pair) * 2);
      EXPECT_FLOAT_EQ(found[first], float(1 + 0.8 * std::log(1 + std::floor(double(at + 1) / 3)))) << at;
      EXPECT_EQ(found[first + 1], 0);
    }
  config.scores.growth_every = 0;
  EXPECT_FALSE(growth_of_queries(config, *device));
}

TEST(Scores, of_layers_that_turn_grow_with_their_angles) {
  ModelConfig config = tiny_chunks();
  config.scores.growth_every = 3;
  config.scores.growth_of = QueryGrowth::all;
  const auto device = open_device("cpu", {.threads = 1});
  const auto plain = to_host<float>(rotary_angles(config, *device)),
             grown = to_host<float>(growing_angles(config, *device)),
             still = to_host<float>(growth_of_queries(config, *device));
  ASSERT_EQ(plain.size(), grown.size());
  const std::size_t each = plain.size() / std::size_t(config.sequence);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const double factor = 1 + 0.8 * std::log(1 + std::floor(double(i / each) / 3));
    EXPECT_NEAR(grown[i], plain[i] * factor, 1e-6) << i;
    if (i % 2 == 0) {
      EXPECT_FLOAT_EQ(still[i], float(factor)) << i;
    }
  }
}

TEST(Scores, grow_in_all_layers_where_heads_turn_whole) {
  const std::string words =
      "model: {model.scores.growth_of} all wants heads that turn whole, in all layers alike: leave "
      "{model.rotary.percent} and {model.rotary.window_base} out";
  const auto all = [](ModelConfig& m) {
    m.positions = Positions::rotary;
    m.scores.growth_every = 4;
    m.scores.growth_of = QueryGrowth::all;
  };
  refused(small_with([&](ModelConfig& m) {
            all(m);
            m.rotary.percent = 0.5;
          }),
          words);
  refused(small_with([&](ModelConfig& m) {
            all(m);
            m.window = 4;
            m.rotary.window_base = 500;
          }),
          words);
}
