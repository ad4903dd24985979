// weft selftest: layouts that are right, and comparisons that notice what is wrong.
#include "weft/cli/selftest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "tests/cli/told.h"
#include "tests/support/sanitized.h"
#include "tests/support/source_dir.h"
#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/cli/verb.h"
#include "weft/train/validate.h"

using namespace weft::cli;
using testing::HasSubstr;

namespace {

Told told(std::vector<std::string_view> words) {
  const std::vector<std::string_view> model{"--num-layers",
                                            "40",
                                            "--hidden-size",
                                            "5120",
                                            "--num-attention-heads",
                                            "40",
                                            "--seq-length",
                                            "4096",
                                            "--micro-batch-size",
                                            "4",
                                            "--lr",
                                            "1e-4",
                                            "--train-iters",
                                            "1000",
                                            "--max-position-embeddings",
                                            "4096",
                                            "--vocab-size",
                                            "50000",
                                            "--mock-data"};
  words.insert(words.begin(), {"selftest", "gpt"});
  words.insert(words.end(), model.begin(), model.end());
  return run_and_hear(words);
}

Trained tiny() {
  Trained t;
  t.before = {
      {"layers.0.mlp.up.weight", {1, 2}}, {"layers.1.mlp.up.weight", {3, 4}}, {"final_norm.gain", {1}}};
  t.after = {
      {"layers.0.mlp.up.weight", {1.5, 2}}, {"layers.1.mlp.up.weight", {3, 5}}, {"final_norm.gain", {2}}};
  t.losses = {1};
  return t;
}

}  // namespace

/// Forty layers become one of each kind.
TEST(Selftest, makes_layers_of_one_thing_each_fewer) {
  const Told t =
      told({"--hybrid-layer-pattern", "M-M-M*M-M-M-M-M-M*M-M-M-M-M-M*M-M-M-M-M-",
            "--tensor-model-parallel-size", "2", "--pipeline-model-parallel-size", "2", "--ranks", "4"});
  EXPECT_EQ(t.status, 0) << t.out << t.err;
  EXPECT_THAT(t.out, HasSubstr("4 layers of 32 channels and 2 heads, 32 tokens: your model, made small\n"));
}

TEST(Selftest, finds_that_experts_train_as_on_one_rank) {
  const Told t =
      told({"--num-experts", "8", "--moe-router-topk", "2", "--disable-bias-linear",
            "--tensor-model-parallel-size", "2", "--sequence-parallel", "--expert-model-parallel-size", "2",
            "--expert-tensor-parallel-size", "1", "--ranks", "4"});
  EXPECT_EQ(t.status, 0) << t.out << t.err;
}

TEST(Selftest, makes_latents_small) {
  const Told t = told({"--multi-latent-attention", "--q-lora-rank", "1536", "--kv-lora-rank", "512",
                       "--normalization", "RMSNorm", "--disable-bias-linear", "--position-embedding-type",
                       "rope", "--tensor-model-parallel-size", "2", "--sequence-parallel", "--ranks", "2"});
  EXPECT_EQ(t.status, 0) << t.out << t.err;
}

/// In bf16 six steps of these differed by a tenth of what they changed; in f32 they do not.
TEST(Selftest, compares_in_f32_what_differs_by_the_rounding_of_bf16) {
  const Told t =
      told({"--bf16", "--num-experts", "8", "--moe-router-topk", "2", "--disable-bias-linear",
            "--tensor-model-parallel-size", "2", "--expert-tensor-parallel-size", "1", "--ranks", "2"});
  EXPECT_EQ(t.status, 0) << t.out << t.err;
  EXPECT_THAT(t.out, HasSubstr("\nand what differed may do so by:\n"));
  EXPECT_THAT(t.out, HasSubstr("\nthe layout trains as one rank does\n"));
}

TEST(Selftest, makes_lists_of_layers_shorter) {
  const std::string every_fourth_attends = "[1,1,1,0]*10", most_have_experts = "[0]*3+[1]*37";
  const Told t =
      told({"--experimental-attention-variant", "gdn", "--linear-attention-freq", every_fourth_attends,
            "--swiglu", "--num-experts", "4", "--moe-layer-freq", most_have_experts,
            "--tensor-model-parallel-size", "2", "--expert-tensor-parallel-size", "1", "--ranks", "2"});
  EXPECT_EQ(t.status, 0) << t.out << t.err;
}

TEST(Selftest, finds_that_a_layout_trains_as_one_rank_does) {
  const Told t =
      told({"--tensor-model-parallel-size", "2", "--sequence-parallel", "--pipeline-model-parallel-size", "2",
            "--context-parallel-size", "2", "--ranks", "8"});
  EXPECT_EQ(t.status, 0) << t.out << t.err;
  EXPECT_THAT(t.out,
              HasSubstr("2 layers of 32 channels and 2 heads, 32 tokens: your model, made small\n"
                        "tensor 2 · sequence cut · context 2 · pipeline 2, against one rank, 6 steps\n"));
  EXPECT_THAT(t.out, HasSubstr("layers.*.attention.qkv.weight"));
  EXPECT_THAT(t.out, HasSubstr("the layout trains as one rank does\n"));
}

TEST(Selftest, allows_for_gradients_that_travel_in_bf16_and_for_keys_that_ranks_share) {
  const Told t = told({"--tensor-model-parallel-size", "2", "--group-query-attention", "--num-query-groups",
                       "1", "--ranks", "4", "--grad-reduce-in-bf16"});
  EXPECT_EQ(t.status, 0) << t.out << t.err;
  EXPECT_THAT(t.out, HasSubstr("the layout trains as one rank does\n"));
}

TEST(Selftest, needs_nothing_to_read) {
  const std::string config = WEFT_SOURCE_DIR "/examples/llama2_7b.yaml";
  const Told t = run_and_hear(std::vector<std::string_view>{
      "selftest", "gpt", "--config", config, "--tensor-model-parallel-size", "2", "--ranks", "2"});
  EXPECT_EQ(t.status, 0) << t.out << t.err;
  EXPECT_THAT(t.out, HasSubstr("the layout trains as one rank does\n"));
}

TEST(Selftest, needs_no_length_no_rate_and_no_batch) {
  const std::vector<std::string_view> words{"selftest",
                                            "gpt",
                                            "--num-layers",
                                            "2",
                                            "--hidden-size",
                                            "64",
                                            "--num-attention-heads",
                                            "4",
                                            "--seq-length",
                                            "64",
                                            "--max-position-embeddings",
                                            "64",
                                            "--tensor-model-parallel-size",
                                            "2",
                                            "--ranks",
                                            "2"};
  const Told t = run_and_hear(words);
  EXPECT_EQ(t.status, 0) << t.err;
  EXPECT_THAT(t.out, HasSubstr("the layout trains as one rank does"));
}

/// Of every kind of layer one.
TEST(Selftest, makes_examples_of_every_kind_small) {
  const std::vector<std::pair<std::string, std::string>> kinds{
      {"bert_base", "bert"},         {"deepseek_v2_lite", "gpt"}, {"gemma_2b", "gpt"},
      {"gpt_oss_20b", "gpt"},        {"nemotron_h_8b", "gpt"},    {"qwen1.5_moe_a2.7b", "gpt"},
      {"qwen3_next_80b_a3b", "gpt"}, {"t5_small", "t5"}};
  for (const auto& [name, kind] : weft::testing::some_of(kinds, 4)) {
    const std::string config = weft::text(WEFT_SOURCE_DIR "/examples/", name, ".yaml");
    std::vector<std::string_view> words{"selftest",
                                        kind,
                                        "--config",
                                        config,
                                        "--tensor-model-parallel-size",
                                        "2",
                                        "--pipeline-model-parallel-size",
                                        "1",
                                        "--sequence-parallel",
                                        "--ranks",
                                        "2"};
    std::ifstream file(config);
    if (std::string(std::istreambuf_iterator(file), {}).find("num-experts:") != std::string::npos)
      words.insert(words.end(), {"--expert-model-parallel-size", "2", "--expert-tensor-parallel-size", "1"});
    const Told t = run_and_hear(words);
    EXPECT_EQ(t.status, 0) << name << t.out << t.err;
  }
}

// The names of two stacks are longer than those of one.
TEST(Selftest, writes_columns_below_each_other) {
  const std::vector<std::string_view> words{"selftest",
                                            "t5",
                                            "--num-layers",
                                            "2",
                                            "--hidden-size",
                                            "64",
                                            "--num-attention-heads",
                                            "4",
                                            "--micro-batch-size",
                                            "1",
                                            "--seq-length",
                                            "32",
                                            "--decoder-seq-length",
                                            "16",
                                            "--lr",
                                            "1e-3",
                                            "--train-iters",
                                            "4",
                                            "--ranks",
                                            "2"};
  const Told t = run_and_hear(words);
  ASSERT_EQ(t.status, 0) << t.out << t.err;
  std::set<std::size_t> ends;
  std::istringstream lines(t.out);
  for (std::string line; std::getline(lines, line);)
    if (line.ends_with("  the same") || line.ends_with("     share"))
      ends.insert(line.ends_with("share") ? line.size() : line.size() - std::string("  the same").size());
  EXPECT_EQ(ends.size(), 1U) << t.out;
}

TEST(Selftest, takes_stages_that_are_spelled_and_layers_that_are_computed_again) {
  const Told t =
      told({"--pipeline-model-parallel-layout", "Et*10|t*10|t*10|t*10L", "--pipeline-model-parallel-size",
            "2", "--recompute-granularity", "full", "--recompute-method", "block", "--recompute-num-layers",
            "8", "--global-batch-size", "16", "--ranks", "2"});
  EXPECT_EQ(t.status, 0) << t.out << t.err;
  EXPECT_THAT(t.out, HasSubstr("the layout trains as one rank does\n"));
}

TEST(Selftest, compares_all_layers_of_a_kind_by_what_training_changed) {
  Trained other = tiny();
  other.after["layers.1.mlp.up.weight"][0] = 3.25;
  const auto all = compare(other, tiny());
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].group, "final_norm.gain");
  EXPECT_EQ(all[0].difference, 0);
  EXPECT_EQ(all[1].group, "layers.*.mlp.up.weight");
  EXPECT_EQ(all[1].change, 1);
  EXPECT_EQ(all[1].difference, 0.25);
  EXPECT_EQ(all[1].spacing, 5 * 0x1p-23);
}

TEST(Selftest, notices_another_start_a_lost_tensor_and_what_is_no_number) {
  Trained other = tiny();
  other.before["final_norm.gain"][0] = 1.0001F;
  EXPECT_FALSE(compare(other, tiny())[0].started_alike);
  other = tiny();
  other.after.erase("final_norm.gain");
  EXPECT_EQ(compare(other, tiny())[0].difference, INFINITY);
  other = tiny();
  other.after["final_norm.gain"][0] = NAN;
  EXPECT_EQ(compare(other, tiny())[0].difference, INFINITY);
  EXPECT_FALSE(alike({.difference = INFINITY, .spacing = INFINITY}, 0.05));
}

TEST(Selftest, excuses_no_more_than_training_changes) {
  const std::map<std::string, double> moved{{"a", 0.3}, {"b", INFINITY}};
  EXPECT_TRUE(may_be_rounding({.group = "a", .change = 1, .difference = 0.3}, moved, 0.05));
  EXPECT_FALSE(may_be_rounding({.group = "a", .change = 1, .difference = 0.31}, moved, 0.05));
  EXPECT_TRUE(may_be_rounding({.group = "b", .change = 1, .difference = 0.9}, moved, 0.05));
  EXPECT_FALSE(may_be_rounding({.group = "b", .change = 1, .difference = 1.1}, moved, 0.05));
  EXPECT_FALSE(may_be_rounding({.group = "b", .change = 1, .difference = INFINITY}, moved, 0.05));
}

namespace {

/// Of experts in bf16, by two ranks that cut them.
weft::TrainConfig mixture_in_bf16() {
  weft::TrainConfig raw;
  raw.model.kind = "gpt";
  raw.model.layers = 4;
  raw.model.hidden = 64;
  raw.model.heads = 4;
  raw.model.sequence = raw.model.max_positions = 64;
  raw.model.vocabulary = 250;
  raw.model.linear_bias = raw.model.qkv_bias = false;
  raw.model.precision = weft::Precision::bf16;
  raw.model.experts.count = 8;
  raw.model.experts.router.chosen = 2;
  raw.parallel.tp = 2;
  raw.parallel.etp = 1;
  raw.batch.micro = 2;
  raw.length.iterations = 6;
  raw.rate.peak = 1e-2;
  raw.data.mock = true;
  weft::TrainConfig asked = raw;
  weft::complete(asked, 2);
  return shrunk(asked, raw);
}

}  // namespace

TEST(Selftest, excuses_what_rounding_moves_one_rank_by_and_no_mistake_of_fewer_bits) {
  if (weft::testing::sanitized) return;  // trains six times, as others do once
  const weft::TrainConfig small = mixture_in_bf16();
  Trained cut = train_small(small);
  const Trained one = train_small(alone(small));
  const auto not_excused = [&] {
    std::vector<std::string> not_rounding;
    const auto all = compare(cut, one);
    const auto moved = moved_by_rounding(small, one, all);
    for (const Comparison& c : all)
      if (!may_be_rounding(c, moved, allowed(small))) not_rounding.push_back(c.group);
    return weft::join(not_rounding, ", ");
  };
  EXPECT_EQ(not_excused(), "");
  const std::string one_of = "layers.1.attention.qkv.weight";
  const std::vector<float> right = cut.after.at(one_of);
  cut.after.at(one_of) = cut.before.at(one_of);  // learns nothing
  EXPECT_EQ(not_excused(), "layers.*.attention.qkv.weight");
  cut.after.at(one_of) = right;
  cut.after.at(one_of)[7] = NAN;
  EXPECT_EQ(not_excused(), "layers.*.attention.qkv.weight");
}

TEST(Selftest, wants_the_name_of_a_model) {
  const std::vector<std::string_view> words{"selftest"};
  testing::internal::CaptureStderr();
  EXPECT_EQ(run(verbs(), words), 2);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("selftest: name the model and its flags: weft selftest gpt --ranks 4 …"));
}
