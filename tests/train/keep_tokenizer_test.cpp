// A checkpoint holds the tokenizer's files: a run goes on, and a model speaks, where the first ones are gone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/refused.h"
#include "tests/support/source_dir.h"
#include "tests/support/temporary.h"
#include "tests/train/tiny_run.h"
#include "weft/train/keep_tokenizer.h"
#include "weft/train/resume.h"

using namespace weft;
using namespace weft::testing;
using support::TemporaryDirectory;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace {

namespace fs = std::filesystem;

/// Two steps of a run whose tokenizer lies in a directory of its own.
class KeptTokenizer : public ::testing::Test {
 protected:
  KeptTokenizer() {
    fs::create_directory(files_);
    const fs::path golden = fs::path(WEFT_SOURCE_DIR) / "tests/golden/text";
    fs::copy(golden / "toy_bpe_vocab.json", files_ / "vocab.json");
    fs::copy(golden / "toy_bpe_merges.txt", files_ / "merges.txt");
  }
  TrainConfig run(std::int64_t steps) const {
    TrainConfig c = saving_twice(folder_ / "saved");
    c.model.vocabulary = 272;
    c.model.padded_vocabulary = 0;
    c.data.tokenizer.type = "GPT2BPETokenizer";
    c.data.tokenizer.vocab_file = (files_ / "vocab.json").string();
    c.data.tokenizer.merge_file = (files_ / "merges.txt").string();
    c.length.iterations = steps;
    c.rate.resume = SchedulerSource::given;  // a longer run has others
    c.checkpoint.keep_last = 1;
    return completed(c);
  }
  /// As the command line does it.
  std::vector<std::string> with_what_is_there(TrainConfig& config) const {
    config.checkpoint.load = config.checkpoint.save;
    return tokenizer_of_checkpoint(config.checkpoint, config.data.tokenizer);
  }
  fs::path step(int number) const {
    return folder_ / ("saved/step_0000000" + std::to_string(number)) / "tokenizer";
  }
  TemporaryDirectory folder_;
  fs::path files_ = folder_ / "tokenizer";
};

}  // namespace

TEST_F(KeptTokenizer, stands_in_for_files_that_are_gone_again_and_again) {
  train(run(2));
  EXPECT_EQ(read_file(step(2) / "merges.txt"), read_file(files_ / "merges.txt"));
  TrainConfig again = run(3);
  EXPECT_THAT(with_what_is_there(again), IsEmpty()) << "while the first ones are there";
  fs::remove_all(files_);
  EXPECT_THAT(
      with_what_is_there(again),
      ElementsAre("tokenizer: " + (files_ / "vocab.json").string() + " is not there; " +
                      (step(2) / "vocab.json").string() + ", which the checkpoint keeps, is used instead",
                  "tokenizer: " + (files_ / "merges.txt").string() + " is not there; " +
                      (step(2) / "merges.txt").string() + ", which the checkpoint keeps, is used instead"));
  EXPECT_EQ(train(again).losses.size(), 1U);
  EXPECT_FALSE(fs::exists(step(2))) << "only the last step is kept";
  TrainConfig last = run(4);
  EXPECT_EQ(with_what_is_there(last).size(), 2U);
  EXPECT_EQ(last.data.tokenizer.vocab_file, (step(3) / "vocab.json").string());
  EXPECT_EQ(train(last).losses.size(), 1U);
}

TEST_F(KeptTokenizer, is_not_taken_where_it_is_damaged) {
  train(run(2));
  fs::remove_all(files_);
  std::string changed = read_file(step(2) / "vocab.json");
  changed[20] ^= 1;
  write_atomically(step(2) / "vocab.json", std::string_view(changed));
  TrainConfig again = run(3);
  EXPECT_EQ(refused([&] { with_what_is_there(again); }),
            (step(2) / "vocab.json").string() + ": damaged, its hash is not the one in index.json");
}

TEST_F(KeptTokenizer, takes_along_what_belongs_to_a_tokenizer_json) {
  for (const char* name :
       {"tokenizer.json", "tokenizer_config.json", "added_tokens.json", "chat_template.jinja", "README.md"})
    write_atomically(files_ / name, std::string_view(name));
  RunTokenizer fact{.type = "HuggingFaceTokenizer",
                    .files = {(files_ / "tokenizer.json").string()},
                    .hashes = {},
                    .copies = {}};
  const auto kept = keep_tokenizer(fact);
  EXPECT_THAT(fact.copies, ElementsAre("tokenizer.json", "tokenizer_config.json", "added_tokens.json",
                                       "chat_template.jinja"));
  EXPECT_EQ(kept[1].content, "tokenizer_config.json");
}

TEST_F(KeptTokenizer, keeps_two_files_of_one_name_apart) {
  fs::create_directory(folder_ / "other");
  write_atomically(folder_ / "other/my vocab.json", std::string_view("b"));
  write_atomically(files_ / "my vocab.json", std::string_view("a"));
  RunTokenizer fact{
      .type = "GPT2BPETokenizer",
      .files = {(files_ / "my vocab.json").string(), (folder_ / "other/my vocab.json").string()},
      .hashes = {},
      .copies = {}};
  EXPECT_EQ(keep_tokenizer(fact)[1].content, "b");
  EXPECT_THAT(fact.copies, ElementsAre("my_vocab.json", "2_my_vocab.json"));
}
