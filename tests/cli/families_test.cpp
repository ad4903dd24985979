// The verbs with other families than the first: what they train, tell, save, refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/told.h"
#include "tests/support/temporary.h"
#include "weft/base/file.h"
#include "weft/cli/verb.h"

using namespace weft;
using namespace weft::cli;
using testing::HasSubstr;
using testing::Not;

namespace {

Told told_small(std::vector<std::string_view> first, const std::vector<std::string>& more = {}) {
  const std::vector<std::string_view> small{"--num-layers",
                                            "2",
                                            "--hidden-size",
                                            "16",
                                            "--num-attention-heads",
                                            "2",
                                            "--seq-length",
                                            "16",
                                            "--max-position-embeddings",
                                            "16",
                                            "--micro-batch-size",
                                            "2",
                                            "--global-batch-size",
                                            "8",
                                            "--lr",
                                            "1e-3",
                                            "--train-iters",
                                            "4",
                                            "--mock-data",
                                            "--vocab-size",
                                            "64",
                                            "--log-interval",
                                            "1",
                                            "--eval-iters",
                                            "1",
                                            "--no-memory-check"};
  first.insert(first.end(), small.begin(), small.end());
  first.insert(first.end(), more.begin(), more.end());
  return run_and_hear(first);
}

}  // namespace

TEST(Bert, tells_both_losses_in_the_log_in_json_lines_and_of_evaluations) {
  const support::TemporaryDirectory folder;
  const std::string lines = (folder / "log.jsonl").string();
  const Told t = told_small({"train", "bert"}, {"--log-jsonl", lines, "--eval-interval", "2"});
  EXPECT_EQ(t.status, 0) << t.err;
  EXPECT_THAT(t.err, HasSubstr(" | lm loss: "));
  EXPECT_THAT(t.err, HasSubstr(" | sop loss: "));
  EXPECT_THAT(t.err, HasSubstr(" | sop loss PPL: "));
  std::ifstream file(lines);
  std::string first;
  std::getline(file, first);
  const auto step = nlohmann::json::parse(first);
  EXPECT_GT(step["lm_loss"], 3.0);
  EXPECT_NEAR(step["sop_loss"], 0.69, 0.1);
}

TEST(Bert, without_its_binary_head_has_one_loss) {
  const Told t = told_small({"train", "bert"}, {"--bert-no-binary-head"});
  EXPECT_EQ(t.status, 0) << t.err;
  EXPECT_THAT(t.err, HasSubstr(" | lm loss: "));
  EXPECT_THAT(t.err, Not(HasSubstr("sop loss")));
}

TEST(Bert, goes_on_with_the_same_bits) {
  const support::TemporaryDirectory folder;
  const std::string save = (folder / "run").string();
  ASSERT_EQ(told_small({"train", "bert"}, {"--save", save, "--save-interval", "2", "--verify-resume"}).status,
            0);
  const Told t = told_small({"train", "bert"}, {"--load", save, "--ckpt-step", "2", "--verify-resume"});
  EXPECT_EQ(t.status, 0) << t.err;
  EXPECT_THAT(t.err, HasSubstr("verified: step 3 gives its loss"));
  EXPECT_THAT(t.err, HasSubstr("every bit equal"));
}

TEST(Bert, is_tested_under_a_layout) {
  const Told t = told_small({"selftest", "bert"}, {"--tensor-model-parallel-size", "2", "--sequence-parallel",
                                                   "--pipeline-model-parallel-size", "2", "--ranks", "8"});
  EXPECT_EQ(t.status, 0) << t.out << t.err;
  EXPECT_THAT(t.out, HasSubstr("the layout trains as one rank does"));
}

TEST(Bert, shows_its_samples_and_its_plan) {
  const Told sample = told_small({"data", "sample", "bert"}, {"--json"});
  EXPECT_EQ(sample.status, 0) << sample.err;
  EXPECT_TRUE(nlohmann::json::parse(sample.out).contains("token_types")) << sample.out;
  EXPECT_THAT(told_small({"train", "bert", "--dry-run"}).out, HasSubstr("model.sentence_order"));
}

TEST(Bert, refuses_what_is_not_for_it) {
  EXPECT_THAT(told_small({"train", "bert"}, {"--eod-mask-loss"}).err,
              HasSubstr("bert: --eod-mask-loss, --reset-position-ids, "));
  EXPECT_THAT(told_small({"train", "bert"}, {"--window-size", "7,0"}).err,
              HasSubstr("model: a BERT's tokens see the whole text, and no window of 8 keys"));
  EXPECT_THAT(told_small({"train", "bert"}, {"--data-order", "keyed"}).err,
              HasSubstr("bert: samples are drawn by a stored index; leave out --data-order keyed"));
  EXPECT_THAT(told_small({"train", "gpt"}, {"--mask-prob", "0.2"}).err,
              HasSubstr("only the samples of BERT and T5 hide words"));
}

namespace {

Told told_t5(std::vector<std::string_view> first, std::vector<std::string> more = {}) {
  more.insert(more.end(), {"--decoder-seq-length", "8"});
  return told_small(std::move(first), more);
}

}  // namespace

TEST(T5, trains_under_a_layout_with_any_positions) {
  for (const char* positions : {"learned_absolute", "rope", "relative"}) {
    const Told t = told_t5({"train", "t5"},
                           {"--position-embedding-type", positions, "--ranks", "4",
                            "--tensor-model-parallel-size", "2", "--pipeline-model-parallel-size", "2"});
    EXPECT_EQ(t.status, 0) << t.err;
    EXPECT_THAT(t.err, HasSubstr(" | lm loss: "));
  }
}

TEST(T5, goes_on_with_the_same_bits) {
  const support::TemporaryDirectory folder;
  const std::string save = (folder / "run").string();
  ASSERT_EQ(told_t5({"train", "t5"}, {"--save", save, "--save-interval", "2", "--verify-resume"}).status, 0);
  const Told t = told_t5({"train", "t5"}, {"--load", save, "--ckpt-step", "2", "--verify-resume"});
  EXPECT_EQ(t.status, 0) << t.err;
  EXPECT_THAT(t.err, HasSubstr("every bit equal"));
}

TEST(T5, is_tested_under_a_layout_and_planned) {
  const Told t = told_t5({"selftest", "t5"}, {"--decoder-num-layers", "2", "--context-parallel-size", "2",
                                              "--pipeline-model-parallel-size", "4", "--ranks", "8"});
  EXPECT_EQ(t.status, 0) << t.out << t.err;
  EXPECT_THAT(t.out, HasSubstr("the layout trains as one rank does"));
  EXPECT_THAT(told_t5({"train", "t5", "--dry-run"}).out, HasSubstr("model.decoder_sequence"));
}

TEST(T5, refuses_what_is_not_for_it) {
  EXPECT_THAT(told_small({"train", "t5"}).err,
              HasSubstr("model: the length of the decoder's sequence is not set; give --decoder-seq-length"));
  EXPECT_THAT(told_small({"train", "t5"}, {"--decoder-seq-length", "17"}).err,
              HasSubstr("model: 16 positions are fewer than the decoder's sequence length 17"));
  EXPECT_THAT(told_t5({"train", "t5"}, {"--window-size", "7,0"}).err,
              HasSubstr("model: a T5's tokens see the whole text, and no window of 8 keys"));
  EXPECT_THAT(told_t5({"train", "t5"}, {"--group-query-attention"}).err,
              HasSubstr("model: a T5's heads have keys of their own, not 1 query groups for 2 heads"));
  EXPECT_THAT(told_t5({"train", "t5"}, {"--qk-layernorm"}).err,
              HasSubstr("model: a T5 has no norms of queries and keys"));
  EXPECT_THAT(
      told_t5({"train", "t5"}, {"--exact", "--pipeline-model-parallel-size", "2", "--ranks", "2"}).err,
      HasSubstr("exact mode: a T5's words are read by encoder, decoder and output, whose gradients "
                "would be added in another order on several pipeline stages; take one stage, or "
                "--untie-embeddings-and-output-weights"));
  EXPECT_THAT(told_t5({"train", "t5"},
                      {"--position-embedding-type", "relative", "--relative-attention-num-buckets", "7"})
                  .err,
              HasSubstr("model: 7 buckets of distances, an even number from 4 on was expected"));
  EXPECT_THAT(told_t5({"train", "t5"},
                      {"--position-embedding-type", "relative", "--relative-attention-max-distance", "16"})
                  .err,
              HasSubstr("model: distances of 16 and more are alike, but the first 16 of 32 buckets hold one "
                        "distance each; take a greater one"));
}

TEST(OneStack, has_no_settings_of_two) {
  EXPECT_THAT(told_t5({"train", "gpt"}).err,
              HasSubstr("model: gpt has one stack of layers; leave --decoder-num-layers and "
                        "--decoder-seq-length out"));
  EXPECT_THAT(told_small({"train", "bert"}, {"--position-embedding-type", "relative"}).err,
              HasSubstr("model: bert has no relative positions, but learned or rotary ones"));
}
