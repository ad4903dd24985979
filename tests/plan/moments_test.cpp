#include "weft/plan/moments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/train/validate.h"

namespace weft {

inline void PrintTo(const Moment& m, std::ostream* out) {
  *out << "step " << m.step << ": " << m.passes << " of " << m.rows.count << " x " << m.rows.length;
}

}  // namespace weft

using namespace weft;
using ::testing::ElementsAre;

namespace {

/// Ten steps on samples of 16 tokens.
TrainConfig run(const std::function<void(TrainConfig&)>& change) {
  TrainConfig c;
  c.model.layers = 4;
  c.model.hidden = 32;
  c.model.heads = 4;
  c.model.channels = 8;
  c.model.sequence = 16;
  c.model.vocabulary = 64;
  c.data.mock = true;
  c.batch.micro = 2;
  c.batch.global = 8;
  c.length.iterations = 10;
  c.rate.peak = 1e-3;
  change(c);
  (void)complete(c, 1);
  return c;
}

void pieces(TrainConfig& c) {
  c.curriculum = {
      .rule = {.curve = data::LengthCurve::fixed_discrete, .lengths = {4, 12, 16}, .until = {2, 5}},
      .form = data::ExcerptForm::reshape};
}

void drops(TrainConfig& c) {
  c.model.token_drop = {.layers = {1}, .least = 4, .most = 16, .steps = 6, .multiple = 4};
}

}  // namespace

TEST(Moments, are_one_where_all_steps_are_alike) {
  EXPECT_THAT(moments_of(run([](TrainConfig&) {})), ElementsAre(Moment{1, {2, 16}, 4}));
  EXPECT_THAT(moments_of(run([](TrainConfig& c) { pieces(c), c.curriculum.form = {}; })),
              ElementsAre(Moment{1, {2, 16}, 4}));
}

// Of a sample of 17 tokens: four pieces of 4, and from step 3 on two of 12.
TEST(Moments, have_the_pieces_that_are_most_tokens) {
  EXPECT_THAT(moments_of(run([](TrainConfig& c) { pieces(c), c.batch.micro = 1; })),
              ElementsAre(Moment{1, {1, 16}, 8}, Moment{3, {2, 12}, 8}));
  EXPECT_EQ(moments_of(run(pieces)).size(), 1U);  // of two: two pieces of 12, which are fewer tokens
}

// Of one of 17: four of 4, or two of 12.
TEST(Moments, have_the_most_passes_where_pieces_are_taken_one_by_one) {
  EXPECT_THAT(moments_of(run([](TrainConfig& c) { pieces(c), c.model.exact = true; })),
              ElementsAre(Moment{1, {1, 16}, 8}, Moment{1, {1, 4}, 32}));
}

// Layers see 4 tokens, 8 from step 3, 12 from step 5 and all from step 7 on.
TEST(Moments, have_the_most_tokens_of_which_some_pass_by) {
  EXPECT_THAT(moments_of(run(drops)), ElementsAre(Moment{10, {2, 16}, 4}, Moment{5, {2, 16}, 4}));
  EXPECT_THAT(moments_of(run([](TrainConfig& c) { drops(c), c.length.iterations = 4; })),
              ElementsAre(Moment{4, {2, 16}, 4}, Moment{3, {2, 16}, 4}));
}

TEST(Moments, are_steps_that_weigh_what_layers_add) {
  const auto leaves_out = [](TrainConfig& c) { c.model.layer_drop = {.theta = 0.1, .gamma = 1}; };
  const std::vector<Moment> moments = moments_of(run(leaves_out));
  ASSERT_EQ(moments.size(), 1U);
  EXPECT_GE(moments[0].step, 3);
  const ModelConfig model = with_all_layers(run(leaves_out).model);
  for (int layer = 0; layer < 4; ++layer) {
    const float weight = float(weight_of_layer(model.layer_drop, std::uint64_t(TrainConfig().run.seed),
                                               moments[0].step, {layer, 4}));
    EXPECT_GE(weight, 1.F);
    EXPECT_EQ(weight > 1, layer > 0);
  }
}
