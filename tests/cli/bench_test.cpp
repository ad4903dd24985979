// weft bench train: what it measures, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "tests/cli/told.h"
#include "tests/support/source_dir.h"
#include "weft/cli/verb.h"

using namespace weft::cli;
using Json = nlohmann::json;

namespace {

Told told(std::vector<std::string_view> more) {
  std::vector<std::string_view> words = {"bench", "train",
                                         "gpt",   "--num-layers",
                                         "1",     "--hidden-size",
                                         "32",    "--num-attention-heads",
                                         "2",     "--seq-length",
                                         "16",    "--max-position-embeddings",
                                         "16",    "--micro-batch-size",
                                         "2",     "--vocab-size",
                                         "50"};
  words.insert(words.end(), more.begin(), more.end());
  return run_and_hear(words);
}

}  // namespace

TEST(BenchTrain, measures_every_family) {
  for (const auto& [family, length] : {std::pair("bert", ""), std::pair("t5", "--decoder-seq-length=8")}) {
    std::vector<std::string_view> words = {"bench", "train", family, "--bench-steps", "2", "--mock-data"};
    for (const std::string_view word :
         {"--num-layers", "1", "--hidden-size", "32", "--num-attention-heads", "2", "--seq-length", "16",
          "--max-position-embeddings", "16", "--micro-batch-size", "2", "--vocab-size", "50"})
      words.push_back(word);
    if (*length != 0) words.push_back(length);
    const auto found = run_and_hear(words);
    EXPECT_EQ(found.status, 0) << found.err;
    EXPECT_THAT(found.out, ::testing::HasSubstr(std::string(family) + " with "));
  }
}

TEST(BenchTrain, says_what_steps_take_of_the_limit_and_where) {
  const Told found = told({"--bench-steps", "2", "--json"});
  ASSERT_EQ(found.status, 0) << found.err;
  const Json json = Json::parse(found.out);
  EXPECT_EQ(json["tokens"], 32);
  EXPECT_EQ(json["step_seconds"].size(), 2U);
  EXPECT_EQ(json["fresh_blocks"], 0);
  EXPECT_GT(json["share_of_product_rate"].get<double>(), 0);
  EXPECT_LT(json["share_of_product_rate"].get<double>(), 1);
  for (const char* kind : {"product", "attention", "norm", "elementwise", "loss", "embedding", "optimizer"})
    EXPECT_GT(json["work"][kind]["seconds"].get<double>(), 0) << kind;
  for (const char* use : {"weights", "gradients", "optimizer"}) {
    const double peak = json["memory"][use]["peak"];
    const double theory = json["memory"][use]["theory"];
    EXPECT_GE(peak, theory) << use;
    EXPECT_LT(peak, 2 * theory) << use;  // a vocabulary of 50 has 128 rows
  }
}

TEST(BenchTrain, says_what_each_rank_of_a_layout_waits_for) {
  const std::vector<std::string_view> layout{"--tensor-model-parallel-size",
                                             "2",
                                             "--context-parallel-size",
                                             "2",
                                             "--pipeline-model-parallel-size",
                                             "2",
                                             "--num-layers",
                                             "2",
                                             "--global-batch-size",
                                             "8",
                                             "--ranks",
                                             "16",
                                             "--bench-steps",
                                             "2"};
  std::vector<std::string_view> words = layout;
  words.push_back("--json");
  const Told found = told(words);
  ASSERT_EQ(found.status, 0) << found.err;
  const Json json = Json::parse(found.out);
  ASSERT_EQ(json["ranks"].size(), 16U);
  EXPECT_EQ(json["ranks"][9]["place"], Json::parse(R"({"tp": 1, "cp": 0, "dp": 0, "pp": 1})"));
  for (const Json& rank : json["ranks"]) {
    EXPECT_GT(rank["work_seconds"].get<double>(), 0);
    for (const char* peers : {"tensor", "context", "data", "pipeline"})
      EXPECT_GT(rank["waits"][peers].get<double>(), 0) << peers;
  }
  const Told text = told(layout);
  EXPECT_NE(text.out.find("16 ranks of "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("rank 9: tp1 cp0 dp0 pp1"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("most held   of one rank"), std::string::npos) << text.out;
}

TEST(BenchTrain, says_who_waits_for_ranks_with_other_experts) {
  const Told found = told({"--num-experts", "4", "--expert-model-parallel-size", "2", "--disable-bias-linear",
                           "--ranks", "2", "--global-batch-size", "4", "--bench-steps=2", "--json"});
  ASSERT_EQ(found.status, 0) << found.err;
  const Json json = Json::parse(found.out);
  EXPECT_EQ(json["step_seconds"].size(), 2U);
  for (const Json& rank : json["ranks"]) {
    EXPECT_GT(rank["waits"]["experts"].get<double>(), 0);
    EXPECT_GT(rank["waits"]["experts"], rank["waits"]["tensor"]);
  }
}

// The words of a Megatron script as they stand, but for the program: nothing of their files is read.
TEST(BenchTrain, takes_a_script_whose_vocabulary_is_its_tokenizers) {
  const Told found = told({"--vocab-file",
                           WEFT_SOURCE_DIR "/tests/golden/text/toy_bpe_vocab.json",
                           "--merge-file",
                           WEFT_SOURCE_DIR "/tests/golden/text/toy_bpe_merges.txt",
                           "--data-path",
                           "nowhere",
                           "--split",
                           "949,50,1",
                           "--lr=0.00015",
                           "--train-samples",
                           "400",
                           "--lr-warmup-samples",
                           "4",
                           "--eval-iters",
                           "10",
                           "--eval-interval",
                           "1000",
                           "--save",
                           "nowhere",
                           "--save-interval",
                           "1000",
                           "--bench-steps",
                           "1"});
  EXPECT_EQ(found.status, 0) << found.err;
  EXPECT_EQ(found.err,
            "no effect here: --vocab-size 50 (the tokenizer has 272 tokens)\n"
            "no effect here: --eval-interval (nothing is evaluated)\n");
}

TEST(BenchTrain, refuses_what_cannot_fit_as_training_does) {
  const Told found = told({"--hidden-size", "1000000000", "--kv-channels", "250000000"});
  EXPECT_EQ(found.status, 2);
  EXPECT_THAT(found.err, ::testing::StartsWith("this run needs more than "));
  EXPECT_THAT(found.err, ::testing::HasSubstr("; --hidden-size "));
  EXPECT_THAT(found.err, ::testing::EndsWith("; --no-memory-check starts all the same\n"));
}

// The layout is not seen in what is trained.
TEST(BenchTrain, trains_on_the_same_tokens_under_every_layout) {
  const auto loss = [](std::vector<std::string_view> more) {
    more.insert(more.end(), {"--global-batch-size", "8", "--hidden-dropout", "0", "--attention-dropout", "0",
                             "--bench-steps", "1", "--json"});
    return Json::parse(told(more).out)["loss"].get<double>();
  };
  const double alone = loss({});
  EXPECT_NEAR(loss({"--context-parallel-size", "2", "--ranks", "4"}), alone, 1e-5);
  EXPECT_NEAR(loss({"--tensor-model-parallel-size", "2"}), alone, 1e-5);
}

TEST(BenchTrain, says_what_it_cannot_take) {
  EXPECT_EQ(told({"--bench-steps", "none"}).err,
            "bench train: --bench-steps takes a number of steps, not 'none'\n");
  EXPECT_EQ(told({"--bench-steps"}).err, "bench train: --bench-steps takes a number of steps, not ''\n");
  EXPECT_EQ(told({"--bench-steps=0"}).err, "bench train: --bench-steps takes a number of steps, not '0'\n");
  EXPECT_EQ(told({"--device", "cpu:reference"}).err,
            "bench train: measures the processor or a GPU; leave out --device cpu:reference\n");
  EXPECT_EQ(told({"--optimizer", "sgd"}).err,
            "bench train: measures steps of Adam; leave out --optimizer sgd\n");
  EXPECT_EQ(told({"--dry-run"}).err, "bench train: --dry-run measures nothing; use weft train for it\n");
}
