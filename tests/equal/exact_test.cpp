// Exact mode: the same leaves in the same tree, whoever holds them. Every layout gives the bits of one rank.
#include <gtest/gtest.h>

#include "tests/equal/same_bits.h"
#include "tests/support/sanitized.h"
#include "weft/base/error.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr int few = rounds(3);  // steps: a sum in another order shows in the second

ModelConfig model_of(const std::string& name, Precision precision) {
  ModelConfig config = shape_of(name, 4);
  config.precision = precision;
  complete(config);
  return config;
}

Curve exactly(const ModelConfig& config, Cut cut) {
  cut.exact = true;
  cut.steps = few;
  return train(config, cut);
}

class ExactMode : public ::testing::TestWithParam<std::tuple<const char*, Precision>> {
 protected:
  void expect_the_bits_of_one_rank(const std::vector<Cut>& cuts) const {
    const auto& [name, precision] = GetParam();
    const ModelConfig config = model_of(name, precision);
    const Curve alone = exactly(config, {.parallel = {.dp = 1}, .micro_batch = 1});
    // Every layout meets both models and both precisions in two of the four products of them.
    const bool odd = (name == std::string("gpt2")) == (precision == Precision::bf16);
    for (std::size_t i = odd ? 1 : 0; i < cuts.size(); i += std::size_t(2 * every(8)))
      expect_same_bits(exactly(config, cuts[i]), alone, name_of(cuts[i]));
  }
};

}  // namespace

TEST_P(ExactMode, gives_the_bits_of_one_rank_over_tensor_and_data_parallel_ranks) {
  expect_the_bits_of_one_rank(
      {Cut{{.tp = 2, .dp = 1}}, Cut{{.tp = 4, .dp = 1}, 4}, Cut{{.dp = 2}}, Cut{{.dp = 4, .zero = 1}, 1},
       Cut{{.dp = 8, .overlap_reduce = true, .bucket_elements = 500}, 1}, Cut{{.tp = 2, .dp = 2, .zero = 1}},
       Cut{{.dp = 2, .zero = 2}}, Cut{{.tp = 2, .dp = 4, .sequence = true, .zero = 2}, 1},
       Cut{{.dp = 4, .zero = 3}, 1}, Cut{{.tp = 2, .dp = 2, .zero = 3}},
       Cut{{.pp = 2, .cp = 2, .dp = 2, .zero = 3}, 1}, Cut{{.pp = 2, .dp = 2, .zero = 3}, 1},
       Cut{{.dp = 4, .zero = 1, .shard_groups = 2}, 1}, Cut{{.dp = 8, .zero = 2, .shard_groups = 4}, 1},
       Cut{{.tp = 2, .cp = 2, .dp = 2, .zero = 3, .shard_groups = 2}, 1},
       Cut{{.pp = 2, .dp = 4, .zero = 3, .shard_groups = 2}, 2}});
}

TEST_P(ExactMode, gives_the_bits_of_one_rank_whatever_a_micro_batch_holds) {
  expect_the_bits_of_one_rank({Cut{{.dp = 1}, 2}, Cut{{.dp = 1}, 8}, Cut{{.dp = 2}, 4}});
}

TEST_P(ExactMode, gives_the_bits_of_one_rank_under_every_schedule) {
  expect_the_bits_of_one_rank({Cut{{.pp = 2, .dp = 1}}, Cut{{.pp = 4, .dp = 1}, 1},
                               Cut{{.pp = 2, .dp = 1, .schedule = "gpipe"}, 4},
                               Cut{{.pp = 2, .dp = 1, .schedule = "zb-h1"}},
                               Cut{{.pp = 2, .dp = 1, .schedule = "zb-v", .virtual_stages = 2}},
                               Cut{{.pp = 2, .dp = 1, .schedule = "interleaved", .virtual_stages = 2}},
                               Cut{{.tp = 2, .pp = 2, .dp = 2, .schedule = "zb-h1"}, 1},
                               Cut{{.pp = 2, .dp = 4, .schedule = "zb-v", .virtual_stages = 2, .zero = 1}, 1},
                               Cut{{.tp = 4, .pp = 2, .dp = 8, .zero = 1}, 1}});
}

TEST_P(ExactMode, gives_the_bits_of_one_rank_where_sequences_are_cut) {
  expect_the_bits_of_one_rank(
      {Cut{{.tp = 2, .dp = 1, .sequence = true}}, Cut{{.tp = 4, .dp = 2, .sequence = true, .zero = 1}, 4},
       Cut{{.tp = 2, .pp = 2, .dp = 1, .sequence = true, .schedule = "zb-h1"}}, Cut{{.cp = 2, .dp = 1}},
       Cut{{.cp = 4, .dp = 1, .context = ContextForm::gather}, 1},
       Cut{{.cp = 2, .dp = 4, .context = ContextForm::heads, .zero = 1}, 1}, Cut{{.tp = 4, .cp = 2, .dp = 1}},
       Cut{{.tp = 2, .cp = 4, .dp = 1, .sequence = true}},
       Cut{{.tp = 2, .pp = 2, .cp = 2, .dp = 2, .sequence = true}, 1},
       Cut{{.tp = 2, .pp = 4, .cp = 2, .dp = 4, .sequence = true, .zero = 1}, 1}});
}

INSTANTIATE_TEST_SUITE_P(Models, ExactMode,
                         ::testing::Combine(::testing::Values("gpt2", "llama", "bert", "t5"),
                                            ::testing::Values(Precision::f32, Precision::bf16)),
                         [](const auto& test) {
                           return std::get<0>(test.param) +
                                  std::string(std::get<1>(test.param) == Precision::f32 ? "_f32" : "_bf16");
                         });

// Gains of heads' norms are summed over the heads of all tensor-parallel ranks, and over the tokens of all
// context-parallel ones.
TEST(ExactMode, gives_the_bits_of_one_rank_with_norms_of_heads) {
  for (const char* name : {"gpt2", "llama"}) {
    ModelConfig config = model_of(name, name[0] == 'g' ? Precision::f32 : Precision::bf16);
    config.qk_norm = true;
    complete(config);
    const Curve alone = exactly(config, {.parallel = {.dp = 1}});
    const std::vector<Cut> cuts{
        {{.tp = 2, .cp = 2, .dp = 1}}, {{.tp = 4, .cp = 2, .dp = 1, .sequence = true}}, {{.cp = 2, .dp = 2}}};
    for (std::size_t i = 0; i < cuts.size(); i += std::size_t(every(3)))
      expect_same_bits(exactly(config, cuts[i]), alone, name_of(cuts[i]));
  }
}

// Encoder, decoder and output add to one gradient in one order, wherever each of them stands: here the last
// use lies on the first rank, the second on the last, or every one on a rank of its own.
TEST(ExactMode, gives_the_bits_of_one_rank_where_two_stacks_and_the_output_share_words) {
  const ModelConfig config = shape_of("t5", 4);
  const Curve alone = exactly(config, {.parallel = {.dp = 1}});
  for (const Cut& cut : {Cut{{.tp = 2, .dp = 2, .sequence = true}}, Cut{{.cp = 2, .dp = 1}},
                         Cut{{.pp = 2, .dp = 1}}, Cut{{.pp = 4, .dp = 1}}, Cut{{.pp = 2, .dp = 2, .zero = 1}},
                         Cut{{.pp = 2, .dp = 1, .schedule = "zb-v", .virtual_stages = 2}},
                         Cut{{.tp = 2, .pp = 2, .dp = 1, .schedule = "interleaved", .virtual_stages = 2}}})
    expect_same_bits(exactly(config, cut), alone, name_of(cut));
}

// Two heads, and a circle of four to share them.
TEST(ExactMode, gives_the_bits_of_one_rank_where_heads_cannot_be_traded) {
  ModelConfig config = model_of("llama", Precision::f32);
  config.heads = 2;
  config.groups = 1;
  config.qk_norm = true;
  complete(config);
  const Curve alone = exactly(config, {.parallel = {.dp = 1}});
  for (const Cut& cut : {Cut{{.cp = 4, .dp = 1}}, Cut{{.tp = 2, .cp = 2, .dp = 1, .sequence = true}}})
    expect_same_bits(exactly(config, cut), alone, name_of(cut));
}

namespace {

struct Keys {
  const char* name;
  int heads, groups;
  Precision precision = Precision::f32;
};

class ExactSharedKeys : public ::testing::TestWithParam<Keys> {};

/// "gpt2" has biases, "llama" turns its heads, and has norms of them here.
ModelConfig model_of(const Keys& keys) {
  ModelConfig config = shape_of(keys.name, 2);
  config.precision = keys.precision;
  config.heads = keys.heads;
  config.groups = keys.groups;
  config.channels = 4;
  config.qk_norm = keys.name == std::string("llama");
  complete(config);
  return config;
}

}  // namespace

// A rank holds all queries of two keys, of one key, a half of them or a quarter: what they say of the key is
// the same sum. Every layout meets half of the models.
TEST_P(ExactSharedKeys, give_the_bits_of_one_rank) {
  const ModelConfig config = model_of(GetParam());
  const Curve alone = exactly(config, {.parallel = {.dp = 1}, .micro_batch = 1});
  const std::vector<Cut> cuts{Cut{{.tp = 2, .dp = 1}},
                              Cut{{.tp = 4, .dp = 1, .sequence = true}, 4},
                              Cut{{.tp = 4, .dp = 2, .zero = 1, .bucket_elements = 300}, 1},
                              Cut{{.tp = 8, .dp = 1, .sequence = true}},
                              Cut{{.cp = 2, .dp = 1}},
                              Cut{{.tp = 2, .cp = 4, .dp = 1, .sequence = true}},
                              Cut{{.tp = 4, .pp = 2, .dp = 1, .sequence = true, .schedule = "zb-h1"}},
                              Cut{{.tp = 4, .cp = 2, .dp = 1}},
                              Cut{{.tp = 2, .pp = 2, .cp = 2, .dp = 2, .sequence = true, .zero = 1}, 1}};
  const bool odd = GetParam().precision == Precision::bf16;
  for (std::size_t i = odd ? 1 : 0; i < cuts.size(); i += std::size_t(2 * every(3)))
    if (cuts[i].parallel.tp <= config.heads)
      expect_same_bits(exactly(config, cuts[i]), alone, name_of(cuts[i]));
}

INSTANTIATE_TEST_SUITE_P(Models, ExactSharedKeys,
                         ::testing::Values(Keys{"gpt2", 4, 1}, Keys{"gpt2", 8, 1, Precision::bf16},
                                           Keys{"llama", 4, 2}, Keys{"llama", 8, 2, Precision::bf16},
                                           Keys{"llama", 8, 4}, Keys{"gpt2", 4, 2, Precision::bf16}),
                         [](const auto& test) {
                           const Keys& keys = test.param;
                           return text(keys.name, "_", keys.heads, "_heads_", keys.groups, "_keys_",
                                       keys.precision == Precision::f32 ? "f32" : "bf16");
                         });

// A mean of a micro batch stays one: sequences of other lengths do not weigh more.
TEST(ExactMode, means_what_fast_mode_means) {
  const ModelConfig config = model_of("gpt2", Precision::f32);
  for (const bool per_token : {false, true}) {
    const Cut four{
        .parallel = {.dp = 1}, .micro_batch = 4, .steps = few, .per_token = per_token, .uneven = true};
    const Curve alone = exactly(config, four);
    EXPECT_EQ(difference(alone, train(config, four)), "");
    Cut cut = four;
    cut.parallel = {.tp = 2, .pp = 2, .dp = 2};
    expect_same_bits(exactly(config, cut), alone, name_of(cut));
  }
}

// Sums in another order are seen: fast mode's layouts part within a few steps, exact mode's nowhere, unless
// somebody adds samples in another order.
TEST(ExactMode, would_see_a_sum_in_another_order) {
  const ModelConfig config = model_of("gpt2", Precision::f32);
  const Curve alone = train(config, {.parallel = {.dp = 1}, .steps = few});
  EXPECT_NE(train(config, {.parallel = {.tp = 2, .dp = 1}, .steps = few}).norms, alone.norms);
  EXPECT_NE(train(config, {.parallel = {.dp = 2}, .steps = few}).norms, alone.norms);
  const Cut reordered{.parallel = {.dp = 2}, .fault = Fault::samples_reordered};
  EXPECT_NE(exactly(config, reordered).norms, exactly(config, {.parallel = {.dp = 2}}).norms);
}
