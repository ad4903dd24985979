// The verbs with other families than the first: what they train, tell, save, refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/told.h"
#include "tests/support/source_dir.h"
#include "tests/support/temporary.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/cli/verb.h"

using namespace weft;
using namespace weft::cli;
using testing::HasSubstr;
using testing::MatchesRegex;
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

namespace {

/// Whether a file of events holds a number under this name, and no longer one: a protocol buffer's text.
bool tells(const std::string& events, const std::string& tag) {
  return events.find(std::string{'\n', char(tag.size())} + tag) != std::string::npos;
}

}  // namespace

// As Megatron names them, whose program writes every loss by its key in the log line.
TEST(Bert, tells_both_losses_to_tensorboard) {
  const support::TemporaryDirectory folder;
  const Told t =
      told_small({"train", "bert"}, {"--tensorboard-dir", folder.path().string(), "--eval-interval", "2",
                                     "--log-validation-ppl-to-tensorboard"});
  ASSERT_EQ(t.status, 0) << t.err;
  const std::string events = read_file(std::filesystem::directory_iterator(folder.path())->path());
  for (const std::string loss : {"lm loss", "sop loss"})
    for (const char* what : {"", " vs samples", " validation", " validation vs samples", " validation ppl",
                             " validation ppl vs samples"})
      EXPECT_TRUE(tells(events, loss + what)) << loss << what;
  EXPECT_FALSE(tells(events, "loss"));
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

TEST(Bert, shows_its_samples_by_its_programs_usual_tokenizer) {
  const std::string words = WEFT_SOURCE_DIR "/tests/golden/text/toy_wordpiece_vocab.txt";
  EXPECT_EQ(told_small({"data", "sample", "bert"}, {"--vocab-file", words}).err,
            "no effect here: --vocab-size 64 (the tokenizer has 39 tokens)\n");
}

TEST(Bert, takes_the_word_by_which_megatrons_program_chooses_its_layers) {
  EXPECT_EQ(told_small({"train", "bert", "--dry-run"}, {"--spec", "local"}).status, 0);
  EXPECT_THAT(told_small({"train", "bert", "--dry-run"}, {"--spec", "my.module", "layers"}).err,
              HasSubstr("layers given as Python code"));
  EXPECT_THAT(told_small({"train", "t5"}, {"--pipeline-model-parallel-split-rank", "1"}).err,
              HasSubstr("--pipeline-model-parallel-split-rank is gone from Megatron-LM; write "
                        "--pipeline-model-parallel-layout"));
}

TEST(Bert, refuses_what_is_not_for_it) {
  EXPECT_THAT(told_small({"train", "bert"}, {"--eod-mask-loss"}).err,
              HasSubstr("bert: --eod-mask-loss, --reset-position-ids, "));
  EXPECT_THAT(told_small({"train", "bert"}, {"--window-size", "7,0"}).err,
              HasSubstr("model: a BERT's tokens see the whole text, and no window of 8 keys"));
  EXPECT_THAT(told_small({"train", "bert"}, {"--data-order", "keyed"}).err,
              HasSubstr("bert: samples are drawn by a stored index; leave --data-order keyed out"));
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

// Lengths are the run's own, whatever config.json says of them.
TEST(T5, begins_as_a_model_of_hugging_face_and_becomes_one_again) {
  const support::TemporaryDirectory folder;
  const std::string model = WEFT_SOURCE_DIR "/tests/golden/exchange/t5", save = (folder / "run").string(),
                    out = (folder / "out").string();
  const std::vector<std::string_view> words{"train",
                                            "t5",
                                            "--load",
                                            model,
                                            "--use-checkpoint-args",
                                            "--mock-data",
                                            "--seq-length",
                                            "32",
                                            "--lr",
                                            "1e-3",
                                            "--micro-batch-size",
                                            "2",
                                            "--train-iters",
                                            "2",
                                            "--decoder-seq-length",
                                            "24",
                                            "--eval-iters",
                                            "0",
                                            "--save-interval",
                                            "2",
                                            "--save",
                                            save,
                                            "--no-memory-check"};
  const Told trained = run_and_hear(words);
  ASSERT_EQ(trained.status, 0) << trained.err;
  const Told written = run_and_hear(std::vector<std::string_view>{"checkpoint", "convert", save, out});
  EXPECT_EQ(written.status, 0) << written.err;
  EXPECT_THAT(read_file(out + "/config.json"), HasSubstr("\"decoder_start_token_id\": 0"));
}

TEST(T5, is_tested_under_a_layout_and_planned) {
  const Told t = told_t5({"selftest", "t5"}, {"--decoder-num-layers", "2", "--context-parallel-size", "2",
                                              "--pipeline-model-parallel-size", "4", "--ranks", "8"});
  EXPECT_EQ(t.status, 0) << t.out << t.err;
  EXPECT_THAT(t.out, HasSubstr("36 tokens for the encoder and 32 for the decoder: your model, made small"));
  EXPECT_THAT(t.out, HasSubstr("the layout trains as one rank does"));
  const Told plan = told_t5({"train", "t5", "--dry-run"});
  EXPECT_THAT(plan.out, HasSubstr("model.decoder_sequence"));
  EXPECT_THAT(plan.out, HasSubstr("a step learns from 192 tokens in "));  // 8 times 16 and 8
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

namespace {

/// Checkpoints of two steps of a tiny BERT or T5, each in a directory of its own.
class DiffOfFamilies : public ::testing::TestWithParam<std::string_view> {
 protected:
  /// Saved under one name, which is a fact of the run, and then moved.
  std::string saved(const std::string& name, std::vector<std::string> more = {}) const {
    const std::string run = (folder_ / "run").string(), moved = (folder_ / name).string();
    more.insert(more.end(), {"--train-iters=2", "--eval-iters=0", "--save", run, "--save-interval", "2"});
    if (GetParam() == "t5") more.insert(more.end(), {"--decoder-seq-length", "8"});
    std::vector<std::string_view> words{"train", GetParam()};
    words.insert(words.end(), {"--num-layers", "2", "--hidden-size", "16", "--num-attention-heads", "2"});
    words.insert(words.end(),
                 {"--seq-length", "16", "--max-position-embeddings", "16", "--vocab-size", "64"});
    words.insert(words.end(),
                 {"--micro-batch-size", "2", "--lr", "1e-3", "--mock-data", "--no-memory-check"});
    words.insert(words.end(), more.begin(), more.end());
    const Told t = run_and_hear(words);
    EXPECT_EQ(t.status, 0) << t.err;
    std::filesystem::rename(run, moved);
    return moved;
  }
  static Told diffed(const std::string& a, const std::string& b) {
    return run_and_hear(std::vector<std::string_view>{"checkpoint", "diff", a, b});
  }

 private:
  support::TemporaryDirectory folder_;
};

/// A model with a part less, and what of it the whole one alone has.
struct Lesser {
  std::vector<std::string> flags;
  std::string_view lacks;
};

Lesser lesser(std::string_view family) {
  if (family == "bert") return {{"--bert-no-binary-head"}, "sentence_order.weight  f32 [2, 16]"};
  return {{"--decoder-num-layers", "1"}, "decoder.layers.1.cross.project.weight  f32 [16, 16]"};
}

}  // namespace

TEST_P(DiffOfFamilies, finds_two_equal_runs_equal) {
  const Told t = diffed(saved("first"), saved("second"));
  EXPECT_EQ(t.status, 0);
  EXPECT_THAT(t.out, MatchesRegex("0 of [0-9]+ tensors differ, and 0 facts\n"));
}

TEST_P(DiffOfFamilies, tells_tensors_and_facts_in_which_runs_differ) {
  const std::string first = saved("first");
  const Told t = diffed(first, saved("other_seed", {"--seed", "7"}));
  EXPECT_EQ(t.status, 1);
  EXPECT_THAT(t.out, testing::ContainsRegex(
                         "embedding.words  1024 of 1024 differ, by at most [0-9.e-]{1,9}, relative to its "
                         "norm [0-9.e-]{1,9}\n"));
  EXPECT_THAT(t.out, HasSubstr("run.seed  1234 and 7\n"));
  const auto [flags, lacks] = lesser(GetParam());
  EXPECT_THAT(diffed(first, saved("lesser", flags)).out, HasSubstr(text(lacks, "  only in the first\n")));
}

INSTANTIATE_TEST_SUITE_P(Each, DiffOfFamilies, ::testing::Values("bert", "t5"),
                         [](const auto& one) { return std::string(one.param); });

TEST(OneStack, has_no_settings_of_two) {
  EXPECT_THAT(told_t5({"train", "gpt"}).err,
              HasSubstr("model: gpt has one stack of layers; leave --decoder-num-layers and "
                        "--decoder-seq-length out"));
  EXPECT_THAT(told_small({"train", "bert"}, {"--position-embedding-type", "relative"}).err,
              HasSubstr("model: bert has no relative positions, but learned or rotary ones"));
}
