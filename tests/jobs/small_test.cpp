#include "weft/jobs/small.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

using namespace weft::jobs;
using ::testing::Contains;
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
  const auto words =
      made_small({"--save=out", "--load", "out", "--data-path", "0.5", "a", "0.5", "b", "--deepspeed",
                  "--deepspeed_config=ds.json", "--lr=1e-4", "--tensorboard-dir=tb"},
                 1);
  EXPECT_EQ(words[0], "--lr=1e-4");
  EXPECT_EQ(words[1], "--num-layers");
  EXPECT_THAT(words, Not(Contains("b")));
}
