#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/told.h"
#include "tests/support/chat_tokenizer.h"
#include "tests/support/temporary.h"
#include "weft/base/format.h"
#include "weft/cli/verb.h"

using namespace weft::cli;
using testing::HasSubstr;
using Json = nlohmann::json;

namespace {

Told told(std::vector<std::string_view> words) {
  const std::vector<std::string_view> run_flags = {
      "--num-layers", "1",    "--hidden-size",      "8",  "--num-attention-heads", "1",
      "--seq-length", "16",   "--micro-batch-size", "2",  "--global-batch-size",   "4",
      "--lr",         "1e-3", "--train-iters",      "10", "--mock-data",           "--vocab-size",
      "250"};
  words.insert(words.end(), run_flags.begin(), run_flags.end());
  return run_and_hear(words);
}

std::vector<Json> lines(const std::string& text) {
  std::vector<Json> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(Json::parse(line));
  return all;
}

}  // namespace

TEST(DataVerb, shows_the_rows_of_samples) {
  const Told t = told({"data", "sample", "--index", "3", "--count=2", "--json"});
  EXPECT_EQ(t.status, 0) << t.err;
  const auto samples = lines(t.out);
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[0]["index"], 3);
  EXPECT_EQ(samples[0]["tokens"].size(), 16U);
  EXPECT_EQ(samples[0]["positions"][15], 15);
}

TEST(DataVerb, shows_what_a_step_sees_and_where_it_comes_from) {
  const auto seen = lines(told({"data", "sample", "--step", "2", "--json"}).out);
  const auto from = lines(told({"data", "why", "--step", "2", "--json"}).out);
  ASSERT_EQ(seen.size(), 4U);
  ASSERT_EQ(from.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(seen[i]["index"], i + 4);
    std::int64_t tokens = 0;
    for (const Json& piece : from[i]["documents"]) tokens += piece["count"].get<std::int64_t>();
    EXPECT_EQ(tokens, 17);
  }
  EXPECT_THAT(told({"data", "why", "--index", "0"}).out, HasSubstr("mock data sequence "));
}

TEST(DataVerb, makes_an_index_of_how_difficult_samples_are) {
  const weft::support::TemporaryDirectory folder;
  const std::string to = folder.path().string(), rows = to + "/rows.jsonl", prefix = to + "/corpus";
  std::ofstream(rows)
      << R"({"text": "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1"})"
      << "\n";
  const std::vector<std::string_view> making = {"preprocess",      "--input",      rows,
                                                "--output-prefix", prefix,         "--tokenizer-type",
                                                "NullTokenizer",   "--vocab-size", "250"};
  const Told made = run_and_hear(making);
  ASSERT_EQ(made.status, 0) << made.err;
  const std::string file = prefix + "_text_document";
  const auto asked = [&](std::vector<std::string_view> words) {
    const std::vector<std::string_view> run_flags = {"--num-layers",
                                                     "1",
                                                     "--hidden-size",
                                                     "8",
                                                     "--num-attention-heads",
                                                     "1",
                                                     "--seq-length",
                                                     "12",
                                                     "--micro-batch-size",
                                                     "2",
                                                     "--global-batch-size",
                                                     "4",
                                                     "--lr",
                                                     "1e-3",
                                                     "--train-iters",
                                                     "10",
                                                     "--data-path",
                                                     file,
                                                     "--split",
                                                     "1,0,0",
                                                     "--tokenizer-type",
                                                     "NullTokenizer",
                                                     "--vocab-size",
                                                     "250"};
    words.insert(words.end(), run_flags.begin(), run_flags.end());
    return run_and_hear(words);
  };
  const Told t = asked({"data", "difficulty", "--metric", "vocab_rarity", "--to", to});
  EXPECT_EQ(t.status, 0) << t.err;
  EXPECT_THAT(t.out, testing::MatchesRegex(
                         "vocab_rarity of 3 samples, [0-9]+ to [0-9]+: index in .*/vocab_rarity\n"));
  const std::string metric = "rare:by=percentile,samples=" + to +
                             "/vocab_rarity/vocab_rarity_index_to_sample_percentile_merged" +
                             ",curve=fixed_linear,least=1,most=3,steps=10,multiple=1";
  const auto seen =
      lines(asked({"data", "sample", "--step", "1", "--json", "--difficulty-metrics", metric}).out);
  ASSERT_EQ(seen.size(), 4U);  // the one sample of common words, again and again
  for (const Json& one : seen) EXPECT_EQ(one["tokens"], std::vector<int>(12, 1)) << one;
}

TEST(DataVerb, counts_the_words_that_a_tokenizer_has_where_nothing_else_says_how_many) {
  const weft::support::TemporaryDirectory folder;
  const std::string to = folder.path().string(), rows = to + "/rows.txt", prefix = to + "/corpus",
                    data = prefix + "_text_document";
  std::ofstream(rows) << "a text of bytes that is long enough for a few samples of a dozen\n";
  std::vector<std::string_view> words = {"preprocess", "--input",     rows,  "--output-prefix",
                                         prefix,       "--tokenizer", "byte"};
  ASSERT_EQ(run_and_hear(words).status, 0);
  words = {"data",
           "difficulty",
           "--metric",
           "vocab_rarity",
           "--to",
           to,
           "--num-layers",
           "1",
           "--hidden-size",
           "8",
           "--num-attention-heads",
           "1",
           "--seq-length",
           "12",
           "--micro-batch-size",
           "1",
           "--lr",
           "1e-3",
           "--train-iters",
           "4",
           "--data-path",
           data,
           "--split",
           "1,0,0",
           "--tokenizer-type",
           "ByteLevelTokenizer"};
  const Told t = run_and_hear(words);
  EXPECT_EQ(t.status, 0) << t.err;
  EXPECT_THAT(t.out, HasSubstr("vocab_rarity of 5 samples"));
}

TEST(DataVerb, refuses_an_index_that_it_cannot_make) {
  EXPECT_THAT(told({"data", "difficulty"}).err,
              HasSubstr("data: difficulty needs --to: a folder for the index"));
  EXPECT_THAT(told({"data", "difficulty", "--to", "x", "--metric", "length"}).err,
              HasSubstr("data: --metric: "));
  EXPECT_THAT(told({"data", "difficulty", "t5", "--to", "x", "--decoder-seq-length", "8"}).err,
              HasSubstr("data: difficulty: samples of a model of the family t5 have two texts"));
}

TEST(DataVerb, says_what_it_does_not_know) {
  EXPECT_THAT(told({"data"}).err,
              HasSubstr("data: '--num-layers': expected sample, why, pack or difficulty"));
  EXPECT_THAT(told({"data", "sample", "--of", "all"}).err,
              HasSubstr("data: --of all: expected train, valid or test"));
  EXPECT_THAT(told({"data", "sample", "--count", "x"}).err,
              HasSubstr("data: --count x is not a whole number"));
  EXPECT_THAT(told({"data", "sample", "--count", "0"}).err, HasSubstr("data: --count 0 is not at least 1"));
  EXPECT_THAT(told({"data", "sample", "--index", "1", "--count", "1000000000000000000"}).err,
              HasSubstr("data: --index 1 and --count 1000000000000000000: there are "));
  EXPECT_THAT(told({"data", "sample", "--step", "11"}).err,
              HasSubstr("data: --step 11: the run has 10 steps"));
  EXPECT_THAT(told({"data", "sample", "bart"}).err,
              HasSubstr("model: no family is called bart, weft has gpt, bert"));
  EXPECT_THAT(told({"data", "sample", "--index", "99999999"}).err,
              HasSubstr("mock data: sample 99999999 asked for, there are "));
}

TEST(DataVerb, finds_the_family_behind_a_word_of_its_own) {
  const std::string plain = told({"data", "sample", "gpt", "--json", "--index", "0"}).out;
  EXPECT_NE(plain, "");
  EXPECT_EQ(told({"data", "sample", "--json", "--index", "0", "gpt"}).out, plain);
  EXPECT_EQ(told({"data", "sample", "--index", "0", "--json", "gpt"}).out, plain);
}

TEST(DataVerb, asks_the_checkpoint_for_settings_and_seed_as_the_run_does) {
  const weft::support::TemporaryDirectory folder;
  const std::string saved = (folder / "saved").string();
  const Told trained = told({"train", "gpt", "--seed", "77", "--data-order", "keyed", "--eval-iters", "0",
                             "--save", saved, "--save-interval", "10"});
  ASSERT_EQ(trained.status, 0) << trained.err;
  const std::vector<std::string_view> asked = {"data",   "sample",       "--count", "3",
                                               "--json", "--data-order", "keyed"};
  const auto with = [&](std::vector<std::string_view> more) {
    std::vector<std::string_view> words = asked;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const auto seen = [](std::vector<std::string_view> words) {
    const Told t = run_and_hear(words);
    EXPECT_EQ(t.status, 0) << t.err;
    return t.out;
  };
  const std::string of_the_run = told(with({"--seed", "77"})).out;
  EXPECT_EQ(
      seen(with({"--load", saved, "--use-checkpoint-args", "--mock-data", "--micro-batch-size", "2",
                 "--global-batch-size", "4", "--lr", "1e-3", "--train-iters", "10", "--vocab-size", "250"})),
      of_the_run);
  EXPECT_NE(told(with({"--seed", "78"})).out, of_the_run);
}

namespace {

using weft::support::ChatTokenizer;
using weft::support::line_of_messages;

/// A verb of data with the flags of a run on such lines.
Told asked_of(const std::string& verb, const ChatTokenizer& files, const std::string& lines,
              const std::string& more = "") {
  const std::string words =
      "data " + verb +
      " --num-layers 1 --hidden-size 8 --num-attention-heads 1 --seq-length 80 "
      "--micro-batch-size 1 --lr 1e-3 --train-iters 10 --split 1,0,0 --eval-iters 0 --sft "
      "--sft-tokenizer-prompt-format default --tokenizer-type SFTTokenizer --tokenizer-model " +
      files.folder() + " --data-path " + files.file("talk.jsonl", lines) + more;
  return run_and_hear(weft::split(words, ' '));
}

const std::string small_talk_line = line_of_messages({"system", "S", "user", "Q", "assistant", "A"});

}  // namespace

TEST(DataVerb, shows_which_words_of_conversations_are_learned) {
  const ChatTokenizer files;
  const Told t = asked_of("why", files, "\n" + small_talk_line, " --sft-loss answers");
  EXPECT_EQ(t.out, "sample 0\n  " + files.folder() +
                       "/talk.jsonl:2, tokens 0 to 34\n    <|im_start|>system\nS<|im_end|>\n"
                       "<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n\n"
                       "    learned: \"A<|im_end|>\\n\"\n")
      << t.err;
  const auto json = lines(asked_of("why", files, small_talk_line, " --sft-loss answers --json").out);
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0]["conversations"][0]["line"], 1);
  EXPECT_EQ(json[0]["conversations"][0]["learned"][0], "A<|im_end|>\n");
  EXPECT_THAT(asked_of("sample", files, small_talk_line).out, testing::EndsWith("A<|im_end|>\n\n"));
}

TEST(DataVerb, packs_conversations) {
  const ChatTokenizer files;
  const std::string to = (std::filesystem::path(files.folder()) / "packed").string();
  const std::string three = small_talk_line + small_talk_line + small_talk_line;
  EXPECT_EQ(asked_of("pack", files, three, " --to " + to).out,
            "3 conversations in 2 lines, which 64% fill samples of 80 tokens\n");
  EXPECT_EQ(asked_of("pack", files, three, " --to " + to + " --seq-length 16").out,
            "3 conversations in 3 lines, which 100% fill samples of 16 tokens; 3 are longer than a sample\n");
}

// Two of three parts of one line are empty.
TEST(DataVerb, asks_nothing_of_splits_that_nobody_looks_at) {
  const ChatTokenizer files;
  const Told t = asked_of("why", files, small_talk_line, " --index 0 --eval-iters 10 --split 98,1,1");
  EXPECT_EQ(t.status, 0) << t.err;
}

TEST(DataVerb, says_what_it_cannot_pack) {
  const ChatTokenizer files;
  EXPECT_EQ(asked_of("pack", files, small_talk_line).err, "data: pack needs --to: a file for the lines\n");
  EXPECT_EQ(told({"data", "pack", "--to", "nowhere"}).err,
            "data: pack puts conversations together: give --sft\n");
  const std::string remembering =
      " --to nowhere --swiglu --experimental-attention-variant gdn --linear-attention-freq 2";
  EXPECT_EQ(asked_of("pack", files, small_talk_line, remembering).err,
            "data: pack: layers that remember go from one conversation to the next, so each needs a line of "
            "its own\n");
  EXPECT_EQ(asked_of("pack", files, small_talk_line, " --to nowhere --of valid").err,
            "data: pack takes all lines of a file: leave --of out, and give the files of that split\n");
  EXPECT_EQ(asked_of("difficulty", files, small_talk_line, " --to nowhere").err,
            "data: difficulty: conversations are read in their own order: leave --sft out\n");
  const std::string path = files.file("talk.jsonl", small_talk_line);
  EXPECT_EQ(
      asked_of("pack", files, small_talk_line, " --to nowhere --data-path 1 " + path + " 2 " + path).err,
      "data: pack takes the files of --data-path one behind the other, without weights\n");
}
