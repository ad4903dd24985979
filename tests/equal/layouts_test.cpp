// The same training under every layout: losses and gradient norms against one rank's.
#include <gtest/gtest.h>

#include "tests/equal/run.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary.h"
#include "weft/base/file.h"

using namespace weft;
using namespace weft::testing;

namespace {

class Layouts : public ::testing::TestWithParam<std::tuple<std::string, Cut>> {};

constexpr int few = rounds(6);  // steps where bits are compared: a difference shows at once

Cut alone() { return {.parallel = {.dp = 1}, .micro_batch = 8}; }

ModelConfig with_groups(int groups) {
  ModelConfig config = shape_of("llama", 4);
  config.groups = groups;
  complete(config);
  return config;
}

void expect_near(const Curve& cut_up, const Curve& alone) {
  if (!sanitized) {
    EXPECT_LT(alone.losses.back(), alone.losses.front());  // which takes more than two steps
  }
  EXPECT_EQ(difference(cut_up, alone), "");
}

}  // namespace

TEST_P(Layouts, train_as_one_rank_does) {
  const auto& [name, cut] = GetParam();
  const ModelConfig config = shape_of(name, cut.parallel.pp > 1 ? 4 : 2);
  expect_near(train(config, cut), train(config, alone()));
}

TEST_P(Layouts, hold_what_the_counting_device_counts) {
  const auto& [name, cut] = GetParam();
  const ModelConfig config = shape_of(name, cut.parallel.pp > 1 ? 4 : 2);
  EXPECT_EQ(memory_difference(config, cut), "");
}

INSTANTIATE_TEST_SUITE_P(Ranks, Layouts,
                         ::testing::Combine(::testing::Values("gpt2", "llama", "bert", "t5"),
                                            ::testing::ValuesIn(usual_cuts())),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" + name_of(std::get<1>(test.param));
                         });

// Forms of context parallelism that change from layer to layer, and stages that hold some of them.
TEST(Layouts, train_as_one_rank_does_where_layers_have_forms_of_their_own) {
  const std::vector<ContextForm> forms{ContextForm::ring, ContextForm::two_levels, ContextForm::gather,
                                       ContextForm::heads};
  const ModelConfig config = with_groups(4);
  const Curve one = train(config, alone());
  const Cut cut{{.cp = 4, .dp = 1, .context_layers = forms, .context_levels = {2, 2}}};
  Cut staged = cut;
  staged.parallel.pp = 2;
  staged.parallel.tp = 2;
  staged.parallel.context_layers.back() = ContextForm::ring;  // two key heads a rank
  expect_near(train(config, cut), one);
  expect_near(train(config, staged), one);
  EXPECT_EQ(memory_difference(config, cut), "");
}

// Rates, epsilons and multipliers that follow the width are cut like everything else.
TEST(Layouts, train_as_one_rank_does_in_mup) {
  ModelConfig config = shape_of("llama");
  config.mup = {.on = true, .base_hidden = config.hidden / 4, .embedding_multiplier = 2};
  complete(config);
  const Curve one = train(config, alone());
  EXPECT_NE(difference(one, train(shape_of("llama"), alone())), "");
  expect_near(train(config, {{.tp = 2, .dp = 2, .sequence = true, .zero = 1}, 1}), one);
  expect_near(train(config, {{.pp = 2, .cp = 2, .dp = 1}}), one);
  const Cut exact{.parallel = {.dp = 1}, .micro_batch = 2, .steps = few, .exact = true};
  Cut cut_up = exact;
  cut_up.parallel = {.tp = 2, .cp = 2, .dp = 2};
  EXPECT_EQ(train(config, cut_up).losses, train(config, exact).losses);
}

TEST(Layouts, the_same_layout_gives_the_same_bits_twice) {
  const Cut cut{{.tp = 2, .pp = 2, .dp = 2, .sequence = true}, 1, few};
  EXPECT_EQ(train(shape_of("gpt2"), cut), train(shape_of("gpt2"), cut));
}

// Two copies of a tied embedding have a gradient each, and all sums are taken in ascending microbatch order:
// where stages live and when they run cannot show.
TEST(Layouts, no_schedule_changes_a_bit) {
  const std::vector<const char*> names{"gpt2", "llama", "bert", "t5"};
  for (const char* name : some_of(names, 3)) {
    ModelConfig config = shape_of(name, 4);
    // Of its words' three uses, those that share a stage share a sum; exact mode keeps them apart.
    if (config.kind == "t5") config.tied_output = false;
    const Curve usual = train(config, {.parallel = {.pp = 2, .dp = 1}, .steps = few});
    const auto same = [&](const ParallelConfig& parallel) {
      const Curve other = train(config, {.parallel = parallel, .steps = few});
      EXPECT_EQ(other.losses, usual.losses) << parallel.schedule;
      EXPECT_EQ(other.norms, usual.norms) << parallel.schedule;
      EXPECT_EQ(other.evaluations, usual.evaluations) << parallel.schedule;
      EXPECT_TRUE(other.copies_agree) << parallel.schedule;
    };
    same({.pp = 2, .dp = 1, .schedule = "gpipe"});
    same({.pp = 2, .dp = 1, .schedule = "zb-h1"});
    same({.pp = 2, .dp = 1, .schedule = "zb-v", .virtual_stages = 2});
    same({.pp = 2, .dp = 1, .schedule = "interleaved", .virtual_stages = 2});
    same({.pp = 2, .dp = 1, .virtual_stages = 2, .microbatch_group = 4});
  }
}

TEST(Layouts, no_cut_of_the_layers_changes_a_bit) {
  const ModelConfig config = shape_of("gpt2", 4);
  const Curve usual = train(config, {.parallel = {.pp = 2, .dp = 1}, .steps = few});
  const auto same = [&](const ParallelConfig& parallel) {
    const Curve other = train(config, {.parallel = parallel, .steps = few});
    EXPECT_EQ(other.losses, usual.losses);
    EXPECT_EQ(other.norms, usual.norms);
    EXPECT_EQ(other.evaluations, usual.evaluations);
  };
  same({.pp = 2, .dp = 1, .first_stage_layers = 1, .last_stage_layers = 3});
  same({.pp = 3, .dp = 1, .count_embedding = true, .count_loss = true});
  same({.pp = 2, .dp = 1, .virtual_stages = 3, .layout = "E|t|t|t||tL"});
  same({.pp = 2, .dp = 1, .schedule = "zb-v", .virtual_stages = 2, .layout = "E|tt|t|tL"});
}

TEST(Layouts, a_schedule_out_of_a_file_changes_no_bit) {
  const support::TemporaryDirectory folder;
  const std::string path = (folder / "mine.txt").string();
  write_atomically(path,
                   "stages 0 1\nrank 0: F0 F1 F2 B0 B1 F3 B2 B3\nrank 1: F0 I0 F1 W0 I1 W1 F2 B2 F3 B3\n");
  const ModelConfig config = shape_of("gpt2", 4);
  const Curve own = train(config, {.parallel = {.pp = 2, .dp = 1, .schedule = path}, .steps = few});
  EXPECT_EQ(own.losses, train(config, {.parallel = {.pp = 2, .dp = 1}, .steps = few}).losses);
  EXPECT_EQ(own.most_remembered, (std::vector<std::int64_t>{3, 2}));
}

TEST(Layouts, every_schedule_goes_with_the_other_cuts) {
  const ModelConfig config = shape_of("gpt2", 4);
  Cut whole = alone();
  whole.steps = rounds(10);
  const Curve one = train(config, whole);
  for (const char* schedule : {"gpipe", "zb-h1", "zb-v", "interleaved"}) {
    const int chunks = schedule[0] == 'i' || schedule[3] == 'v' ? 2 : 1;
    const Cut cut{
        {.tp = 2, .pp = 2, .dp = 2, .sequence = true, .schedule = schedule, .virtual_stages = chunks},
        1,
        whole.steps};
    expect_near(train(config, cut), one);
  }
}

TEST(Layouts, an_untied_pipeline_gives_the_bits_of_one_rank) {
  const ModelConfig config = shape_of("llama", 4);
  const Curve one = train(config, {.parallel = {.dp = 1}, .steps = few});
  const Curve cut = train(config, {.parallel = {.pp = 4, .dp = 1, .schedule = "zb-h1"}, .steps = few});
  EXPECT_EQ(cut.losses, one.losses);
  EXPECT_EQ(cut.norms, one.norms);
  EXPECT_EQ(cut.evaluations, one.evaluations);
}

TEST(Layouts, a_rank_may_hold_no_word_of_the_vocabulary) {
  ModelConfig config = shape_of("gpt2");
  config.vocabulary_unit = 128;
  config.padded_vocabulary = 0;
  complete(config);
  expect_near(train(config, {.parallel = {.tp = 2, .dp = 1}}), train(config, alone()));
}

TEST(Layouts, a_mean_over_microbatches_counts_whole_sequences) {
  const ModelConfig config = shape_of("llama");
  expect_near(train(config, {.parallel = {.cp = 2, .dp = 2}, .micro_batch = 1, .per_token = true}),
              train(config, {.parallel = {.dp = 1}, .micro_batch = 8, .per_token = true}));
}

TEST(Layouts, recompute_changes_no_bit_in_a_pipeline) {
  for (const char* schedule : {"1f1b", "zb-h1"}) {
    const Cut cut{{.pp = 2, .dp = 1, .schedule = schedule}, 1, few};
    ModelConfig config = shape_of("gpt2", 4);
    const Curve kept = train(config, cut);
    config.recompute.what = Recompute::full;
    config.recompute.layers = 2;
    EXPECT_EQ(train(config, cut), kept);
  }
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

// Every rank's gradient and their sum are rounded to eight bits, each off by at most 2^-9 of itself: so a
// norm is off by at most 2^-9 (1 + sum over ranks of |g_r| / |g|), and four ranks' gradients are together no
// longer than three times their sum.
TEST(ReduceInBf16, is_off_by_its_rounding_and_no_more) {
  const ModelConfig config = shape_of("gpt2");
  Cut cut{.parallel = {.dp = 4}, .micro_batch = 1, .steps = few};
  const Curve exactly = train(config, cut);
  cut.reduce_in_bf16 = true;
  const Curve rounded = train(config, cut);
  EXPECT_NE(rounded.norms, exactly.norms);
  EXPECT_NEAR(rounded.norms.front(), exactly.norms.front(), 0x1p-7 * exactly.norms.front());
  EXPECT_EQ(rounded.losses.front(), exactly.losses.front());
  for (std::size_t i = 0; i < few; ++i) EXPECT_NEAR(rounded.losses[i], exactly.losses[i], 5e-3);
}

TEST(ReduceInBf16, gives_the_same_bits_in_buckets_and_where_states_are_cut) {
  for (const char* name : {"gpt2", "llama"}) {
    const ModelConfig config = shape_of(name);
    Cut cut{.parallel = {.tp = 2, .dp = 4, .sequence = true}, .micro_batch = 1, .steps = few};
    cut.reduce_in_bf16 = true;
    const auto of = [&] {
      Curve curve = train(config, cut);
      curve.bytes_at_rest.clear();
      return curve;
    };
    const Curve plain = of();
    cut.parallel.bucket_elements = 600;
    cut.parallel.overlap_reduce = true;
    EXPECT_EQ(of(), plain);
    cut.parallel.zero = 1;
    EXPECT_EQ(of(), plain);
    EXPECT_EQ(memory_difference(config, cut), "");
  }
}

TEST(ReduceInBf16, changes_nothing_where_one_rank_reads_all_samples) {
  const ModelConfig config = shape_of("gpt2");
  Cut cut{.parallel = {.tp = 2, .dp = 1}, .steps = few};
  const Curve plain = train(config, cut);
  cut.reduce_in_bf16 = true;
  EXPECT_EQ(train(config, cut), plain);
}

TEST(Memory, is_what_the_counting_device_counts_under_every_schedule_and_option) {
  ModelConfig config = shape_of("gpt2", 4);
  const ParallelConfig whole{.tp = 2, .pp = 2, .dp = 2, .sequence = true};
  const auto with = [&](const std::string& schedule, int chunks, int zero) {
    Cut cut{whole, 1};
    cut.parallel.schedule = schedule;
    cut.parallel.virtual_stages = chunks;
    cut.parallel.zero = zero;
    cut.parallel.overlap_reduce = zero > 0;
    cut.parallel.bucket_elements = zero > 0 ? 600 : 0;
    EXPECT_EQ(memory_difference(config, cut), "") << name_of(cut);
  };
  with("gpipe", 1, 0);
  with("zb-h1", 1, 1);
  with("zb-v", 2, 1);
  config.precision = Precision::bf16;
  with("interleaved", 2, 1);
  config.recompute = {.what = Recompute::full, .layers = 1};
  with("1f1b", 1, 0);
}

TEST(Memory, is_what_the_counting_device_counts_in_exact_mode) {
  Cut cut{{.tp = 2, .pp = 2, .cp = 2, .dp = 1, .sequence = true}};
  cut.exact = true;
  EXPECT_EQ(memory_difference(shape_of("gpt2", 4), cut), "");
  if (every(2) == 1) {
    EXPECT_EQ(memory_difference(shape_of("llama", 4), cut), "");
  }
  ModelConfig shared = shape_of("llama", 4);
  shared.groups = 1;
  EXPECT_EQ(memory_difference(shared, cut), "");
}

TEST(NotFinite, is_found_through_the_pipeline_and_all_ranks_say_the_same) {
  const ModelConfig config = shape_of("gpt2", 4);
  for (const char* schedule : {"1f1b", "zb-v"}) {
    const int chunks = schedule[0] == 'z' ? 2 : 1;
    const Cut cut{{.tp = 2, .pp = 2, .dp = 2, .schedule = schedule, .virtual_stages = chunks}};
    const auto said = searched(config, cut, "layers.2.mlp.down.weight");
    for (const std::string& sentence : said) {
      EXPECT_EQ(sentence, said.front());
      EXPECT_EQ(sentence, "first seen after mlp block of layer 2, samples 1000, 1001");
    }
  }
}
