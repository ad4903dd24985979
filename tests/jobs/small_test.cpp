#include "weft/jobs/small.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

using namespace weft::jobs;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

TEST(Small, keeps_the_layout_and_makes_the_model_fit_it) {
  const auto words = made_small({"--num-layers=40", "--hidden-size", "5120", "--tensor-model-parallel-size=4",
                                 "--fp16", "--pipeline-model-parallel-size", "4", "--global-batch-size=1024"},
                                64);
  std::string all;
  for (const std::string& word : words) all += word + " ";
  EXPECT_EQ(all,
            "--tensor-model-parallel-size=4 --fp16 --pipeline-model-parallel-size 4 --num-layers 4 "
            "--hidden-size 32 "
            "--num-attention-heads 4 --seq-length 32 --max-position-embeddings 32 --micro-batch-size 1 "
            "--global-batch-size 8 "
            "--train-iters 3 --vocab-size 128 --eval-iters 0 --log-interval 1 --threads 1 --mock-data "
            "--data-order keyed ");
}

TEST(Small, has_a_head_for_every_rank_that_trades_them) {
  const auto words = made_small({"--ds-sequence-parallel-size=4", "--tensor-model-parallel-size=2"}, 8);
  EXPECT_THAT(words, Contains("128"));  // tokens: 32 for each of the four
  const auto heads = std::ranges::find(words, "--num-attention-heads");
  ASSERT_NE(heads, words.end());
  EXPECT_EQ(*(heads + 1), "8");
}

TEST(Small, reads_and_saves_nothing_of_the_job) {
  const auto words = made_small({"--save=out",
                                 "--load",
                                 "out",
                                 "--data-path",
                                 "0.5",
                                 "a",
                                 "0.5",
                                 "b",
                                 "--deepspeed",
                                 "--deepspeed_config=ds.json",
                                 "--lr=1e-4",
                                 "--tensorboard-dir=tb",
                                 "--train-data-path",
                                 "0.5",
                                 "b",
                                 "--valid-data-path=b",
                                 "--test-data-path",
                                 "b",
                                 "--data-args-path",
                                 "b",
                                 "--log-jsonl",
                                 "b"},
                                1);
  EXPECT_THAT(std::vector(words.begin(), words.begin() + 4),
              ElementsAre("--deepspeed", "--deepspeed_config=ds.json", "--lr=1e-4", "--num-layers"));
  EXPECT_THAT(words, Not(Contains("b")));
}

TEST(Small, has_one_batch_and_one_length) {
  const auto words =
      made_small({"--rampup-batch-size", "16", "16", "1000", "--step-batch-size-schedule", "0:16",
                  "--curriculum-schedule=linear", "--curriculum-min-length", "64", "--bf16"},
                 1);
  EXPECT_THAT(std::vector(words.begin(), words.begin() + 2), ElementsAre("--bf16", "--num-layers"));
}

TEST(Small, has_a_decoders_length_where_the_job_has_one) {
  const auto words = made_small({"--encoder-seq-length=512", "--decoder-seq-length", "128"}, 1);
  const auto at = std::ranges::find(words, "--decoder-seq-length");
  ASSERT_NE(at, words.end());
  EXPECT_EQ(*(at + 1), "32");
  EXPECT_EQ(std::ranges::count(words, "--decoder-seq-length"), 1);
  EXPECT_THAT(words, Not(Contains("--encoder-seq-length=512")));
}

TEST(Small, keeps_the_stages_of_a_rank) {
  const auto layers = [](std::vector<std::string> words) {
    words.emplace_back("--pipeline-model-parallel-size=4");
    const auto out = made_small(words, 4);
    const auto at = std::ranges::find(out, "--num-layers");
    return std::vector(at, at + 4);
  };
  // 48 layers on 4 ranks, 3 in a stage: 4 stages each.
  EXPECT_THAT(layers({"--num-layers=48", "--num-layers-per-virtual-pipeline-stage", "3"}),
              ElementsAre("--num-layers", "16", "--num-virtual-stages-per-pipeline-rank", "4"));
  EXPECT_THAT(layers({"--num-layers=48", "--num-virtual-stages-per-pipeline-rank=2"}),
              ElementsAre("--num-layers", "8", "--num-virtual-stages-per-pipeline-rank", "2"));
  EXPECT_THAT(layers({"--num-layers=48"}), ElementsAre("--num-layers", "4", "--hidden-size", "16"));
}
