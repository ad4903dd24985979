// The same training under every layout: losses and gradient norms against one rank's.
#include <gtest/gtest.h>

#include "tests/equal/run.h"

using namespace weft;
using namespace weft::testing;

namespace {

class Layouts : public ::testing::TestWithParam<std::tuple<std::string, Cut>> {};

Cut alone() { return {.parallel = {.dp = 1}, .micro_batch = 8}; }

// Sums over a cut contraction, over ranks and over microbatches are rounded in another order: a few units in
// the last place of f32 a step, which twenty steps of Adam carry on to no more than 2e-4 in a loss of
// about 3.4.
void expect_near(const Curve& cut_up, const Curve& alone) {
  ASSERT_EQ(cut_up.losses.size(), alone.losses.size());
  EXPECT_LT(alone.losses.back(), alone.losses.front());
  for (std::size_t i = 0; i < alone.losses.size(); ++i) {
    EXPECT_NEAR(cut_up.losses[i], alone.losses[i], 2e-4) << "step " << i + 1;
    EXPECT_NEAR(cut_up.norms[i], alone.norms[i], 2e-3 * alone.norms[i]) << "step " << i + 1;
  }
  EXPECT_NEAR(cut_up.evaluations.at(0), alone.evaluations.at(0), 2e-4);
  EXPECT_TRUE(cut_up.tied_copies_agree);
}

}  // namespace

TEST_P(Layouts, train_as_one_rank_does) {
  const auto& [name, cut] = GetParam();
  const ModelConfig config = shape_of(name, cut.parallel.pp > 1 ? 4 : 2);
  expect_near(train(config, cut), train(config, alone()));
}

INSTANTIATE_TEST_SUITE_P(
    Ranks, Layouts,
    ::testing::Combine(::testing::Values("gpt2", "llama"),
                       ::testing::Values(Cut{{.tp = 2, .dp = 1}}, Cut{{.tp = 4, .dp = 1}},
                                         Cut{{.tp = 2, .dp = 1, .sequence = true}},
                                         Cut{{.tp = 4, .dp = 1, .sequence = true}}, Cut{{.dp = 2}},
                                         Cut{{.dp = 4}, 1}, Cut{{.tp = 2, .dp = 2, .sequence = true}, 1},
                                         Cut{{.pp = 2, .dp = 1}}, Cut{{.pp = 4, .dp = 1}, 1},
                                         Cut{{.pp = 4, .dp = 1}, 4}, Cut{{.tp = 2, .pp = 2, .dp = 1}},
                                         Cut{{.pp = 2, .dp = 2}, 1},
                                         Cut{{.tp = 2, .pp = 2, .dp = 2, .sequence = true}, 1})),
    [](const auto& test) { return std::get<0>(test.param) + "_" + name_of(std::get<1>(test.param)); });

TEST(Layouts, the_same_layout_gives_the_same_bits_twice) {
  const Cut cut{{.tp = 2, .pp = 2, .dp = 2, .sequence = true}, 1};
  EXPECT_EQ(train(shape_of("gpt2"), cut), train(shape_of("gpt2"), cut));
}

TEST(Layouts, recompute_changes_no_bit_in_a_pipeline) {
  const Cut cut{{.pp = 2, .dp = 1}, 1};
  ModelConfig config = shape_of("gpt2", 4);
  const Curve kept = train(config, cut);
  config.recompute.what = Recompute::full;
  EXPECT_EQ(train(config, cut), kept);
}

TEST(Layouts, a_mean_over_all_tokens_is_the_same_in_a_pipeline) {
  const ModelConfig config = shape_of("gpt2", 4);
  Cut one = alone();
  one.per_token = true;
  expect_near(train(config, {.parallel = {.pp = 2, .dp = 2}, .micro_batch = 1, .per_token = true}),
              train(config, one));
}

TEST(Layouts, a_pipeline_rank_holds_its_own_layers_only) {
  ModelConfig config = shape_of("llama", 4);
  const auto whole = train(config, {.parallel = {.dp = 1}, .steps = 1}).bytes_at_rest.at(0);
  const Curve cut = train(config, {.parallel = {.pp = 4, .dp = 1}, .micro_batch = 1, .steps = 1});
  std::int64_t all = 0;
  for (const std::int64_t bytes : cut.bytes_at_rest) all += bytes;
  EXPECT_EQ(all, whole);
  EXPECT_EQ(cut.bytes_at_rest[1], cut.bytes_at_rest[2]);
  EXPECT_EQ(cut.most_remembered, (std::vector<std::int64_t>{4, 3, 2, 1}));
}
