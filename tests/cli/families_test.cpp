// The verbs with other families than the first: what they train, tell, save, refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/temporary.h"
#include "weft/base/file.h"
#include "weft/cli/verb.h"

using namespace weft;
using namespace weft::cli;
using testing::HasSubstr;
using testing::Not;

namespace {

struct Told {
  int status;
  std::string out, err;
};

Told told(std::vector<std::string_view> first, const std::vector<std::string>& more = {}) {
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
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int status = run(verbs(), first);
  return {status, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

}  // namespace

TEST(Bert, tells_both_losses_in_the_log_in_json_lines_and_of_evaluations) {
  const support::TemporaryDirectory folder;
  const std::string lines = (folder / "log.jsonl").string();
  const Told t = told({"train", "bert"}, {"--log-jsonl", lines, "--eval-interval", "2"});
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
  const Told t = told({"train", "bert"}, {"--bert-no-binary-head"});
  EXPECT_EQ(t.status, 0) << t.err;
  EXPECT_THAT(t.err, HasSubstr(" | lm loss: "));
  EXPECT_THAT(t.err, Not(HasSubstr("sop loss")));
}

TEST(Bert, goes_on_with_the_same_bits) {
  const support::TemporaryDirectory folder;
  const std::string save = (folder / "run").string();
  ASSERT_EQ(told({"train", "bert"}, {"--save", save, "--save-interval", "2", "--verify-resume"}).status, 0);
  const Told t = told({"train", "bert"}, {"--load", save, "--ckpt-step", "2", "--verify-resume"});
  EXPECT_EQ(t.status, 0) << t.err;
  EXPECT_THAT(t.err, HasSubstr("verified: step 3 gives its loss"));
  EXPECT_THAT(t.err, HasSubstr("every bit equal"));
}

TEST(Bert, is_tested_under_a_layout_and_measured) {
  const Told t = told({"selftest", "bert"}, {"--tensor-model-parallel-size", "2", "--sequence-parallel",
                                             "--pipeline-model-parallel-size", "2", "--ranks", "8"});
  EXPECT_EQ(t.status, 0) << t.out << t.err;
  EXPECT_THAT(t.out, HasSubstr("the layout trains as one rank does"));
  const Told measured = told({"bench", "train", "bert", "--bench-steps", "2"});
  EXPECT_EQ(measured.status, 0) << measured.err;
  EXPECT_THAT(measured.out, HasSubstr("bert with "));
}

TEST(Bert, shows_its_samples_and_its_plan) {
  const Told sample = told({"data", "sample", "bert"}, {"--json"});
  EXPECT_EQ(sample.status, 0) << sample.err;
  EXPECT_TRUE(nlohmann::json::parse(sample.out).contains("token_types")) << sample.out;
  EXPECT_THAT(told({"train", "bert", "--dry-run"}).out, HasSubstr("model.sentence_order"));
}

TEST(Bert, refuses_what_is_not_for_it) {
  EXPECT_THAT(told({"train", "bert"}, {"--eod-mask-loss"}).err,
              HasSubstr("bert: --eod-mask-loss, --reset-position-ids, "));
  EXPECT_THAT(told({"train", "bert"}, {"--window-size", "7,0"}).err,
              HasSubstr("model: a BERT's tokens see the whole text, and no window of 8 keys"));
  EXPECT_THAT(told({"train", "bert"}, {"--data-order", "keyed"}).err,
              HasSubstr("bert: samples are drawn by a stored index; leave out --data-order keyed"));
  EXPECT_THAT(told({"train", "gpt"}, {"--mask-prob", "0.2"}).err,
              HasSubstr("only the samples of BERT and T5 hide words"));
}
