#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <regex>
#include <vector>

#include "tests/cli/small_training.h"
#include "tests/cli/told.h"
#include "tests/support/source_dir.h"
#include "weft/cli/dialect.h"
#include "weft/cli/verb.h"

using namespace weft::cli;
using testing::AnyOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

namespace {

Told told(std::vector<std::string_view> words) { return run_and_hear(words); }

std::vector<std::string_view> tiny(const std::vector<std::string_view>& more = {}) {
  std::vector<std::string_view> words = small_training("train", {"--dry-run"});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Sets a variable for one test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }

 private:
  const char* name_;
};

}  // namespace

TEST(Train, prints_every_value_with_who_set_it) {
  const Told t = told(tiny());
  EXPECT_EQ(t.status, 0);
  EXPECT_THAT(t.out,
              HasSubstr("  model.layers                        2                       command line\n"));
  EXPECT_THAT(t.out, HasSubstr("  model.padded_vocabulary             256                     derived\n"));
  EXPECT_THAT(t.out, HasSubstr("  rate.style                          linear                  built-in\n"));
  EXPECT_THAT(t.out, HasSubstr("100 steps on 400 samples; 1 microbatch in the first step"));
  EXPECT_THAT(told(tiny({"--train-iters", "1"})).out, HasSubstr("\n1 step on 4 samples; 1 microbatch in"));
}

TEST(Train, prints_the_same_as_one_json_object) {
  const Json j = Json::parse(told(tiny({"--json", "--use-mcore-models"})).out);
  EXPECT_EQ(j["settings"]["model"]["layers"], Json({{"value", 2}, {"origin", "command line"}}));
  EXPECT_EQ(j["settings"]["model"]["ffn_hidden"]["origin"], "derived");
  EXPECT_EQ(j["steps"], 100);
  EXPECT_EQ(j["notices"].size(), 1u);
}

TEST(Train, says_with_which_change_a_run_would_fit) {
  const std::string out = told(tiny({"--num-layers", "40", "--hidden-size", "32768", "--num-attention-heads",
                                     "64", "--micro-batch-size", "1"}))
                              .out;
  EXPECT_THAT(out, ContainsRegex("leaves .* it does not fit; --[a-z-]+ [0-9]+ would need [0-9.]+ [GM]iB\n"));
}

// Of all ranks that share the machine, whose directory need not be there yet.
TEST(Train, says_whether_states_in_files_and_copies_of_saves_find_room) {
  const auto said = [](std::vector<std::string_view> more) { return told(tiny(more)).out; };
  const std::string files =
      said({"--ranks", "2", "--optimizer-cpu-offload", "--offload-directory", "not/yet"});
  EXPECT_THAT(files,
              ContainsRegex("  and [0-9.]+ [KM]iB in files, the disk of not/yet has .* left: they fit\n"));
  EXPECT_THAT(files, ContainsRegex("    and [0-9.]+ [KM]iB of optimizer states of each rank in a file\n"));
  EXPECT_THAT(
      said({"--optimizer-cpu-offload", "--offload-directory", "not/yet", "--offload-weights"}),
      ContainsRegex("    and [0-9.]+ [KM]iB of weights and optimizer states of each rank in a file\n"));
  EXPECT_THAT(
      said({"--async-save", "--save", "saved", "--save-interval", "1"}),
      ContainsRegex("    and [0-9.]+ [KM]iB of each rank for the copy that is written in the background\n"));
  EXPECT_THAT(said({}), Not(AnyOf(HasSubstr("in files"), HasSubstr("in the background"))));
}

TEST(Train, says_what_a_rank_sends_in_a_step) {
  EXPECT_THAT(told(tiny()).out, Not(HasSubstr("each sends")));
  const auto two = [](std::vector<std::string_view> more) {
    more.insert(more.end(), {"--ranks", "2"});
    return told(tiny(more)).out;
  };
  EXPECT_THAT(two({"--zero-stage", "1"}),
              ContainsRegex("    each sends [0-9.]+ KiB in a step: [0-9.]+ KiB to data-parallel ranks "
                            "\\([0-9.]+ KiB of gradients, [0-9.]+ KiB of weights\\)"));
  EXPECT_THAT(
      two({"--zero-stage", "2", "--zero-quantized-gradients", "--zero-quantized-gradients-block", "64"}),
      ContainsRegex("\\([0-9.]+ KiB of gradients, [0-9.]+ KiB of weights\\)"));
  EXPECT_THAT(two({"--tensor-model-parallel-size", "2"}), HasSubstr(" to tensor-parallel ranks"));
  EXPECT_THAT(two({"--context-parallel-size", "2"}), HasSubstr(" to context-parallel ranks"));
  EXPECT_THAT(two({"--pipeline-model-parallel-size", "2"}), HasSubstr(" to other stages"));
  EXPECT_THAT(two({"--num-experts", "4", "--expert-model-parallel-size", "2"}),
              HasSubstr(" to ranks with other experts"));
}

TEST(Train, says_the_same_to_programs) {
  const Json j = Json::parse(told(tiny({"--ranks", "2", "--zero-stage", "3", "--json"})).out);
  const Json data = j["plan"]["memory"][0]["sends"]["data"];
  EXPECT_GT(data["gathered"], data["sums"]);
  EXPECT_EQ(data["traded"], 0);
  EXPECT_EQ(j["plan"]["memory"][0]["sends"]["tensor"]["sums"], 0);
}

TEST(Train, says_to_programs_what_experts_need_that_all_tokens_go_to) {
  const auto plan = [](std::vector<std::string_view> more) {
    more.insert(more.end(), {"--ranks", "2", "--num-experts", "4", "--json"});
    return Json(Json::parse(told(tiny(more)).out)["plan"]);
  };
  EXPECT_FALSE(plan({})["here"].contains("needs_if_crowded"));
  const Json two = plan({"--expert-model-parallel-size", "2"});
  const Json here = two["here"], rank = two["memory"][0];
  EXPECT_EQ(here["needs_if_crowded"].get<std::int64_t>() - here["needs"].get<std::int64_t>(),
            rank["at_once_if_crowded"].get<std::int64_t>() - rank["at_once"].get<std::int64_t>());
}

TEST(Train, lets_the_environment_stand_in_for_a_launcher) {
  const Variable world("WORLD_SIZE", "8"), rank("RANK", "5");
  const Json j = Json::parse(
      told(tiny({"--tensor-model-parallel-size", "2", "--pipeline-model-parallel-size", "2", "--json"})).out);
  EXPECT_EQ(j["world"], 8);
  EXPECT_EQ(j["settings"]["parallel"]["dp"]["value"], 2);
  EXPECT_EQ(j["coordinate"], Json({{"tp", 1}, {"cp", 0}, {"dp", 0}, {"pp", 1}}));
}

TEST(Train, lets_ranks_stand_in_for_a_launcher) {
  const Json j = Json::parse(told(tiny({"--ranks", "6", "--tensor-model-parallel-size", "2", "--json"})).out);
  EXPECT_EQ(j["world"], 6);
  EXPECT_EQ(j["settings"]["parallel"]["dp"]["value"], 3);
}

TEST(Train, says_that_a_launchers_ranks_are_those_that_there_are) {
  const Variable world("WORLD_SIZE", "8"), rank("RANK", "0");
  EXPECT_EQ(told(tiny({"--ranks", "3"})).err, "no effect here: --ranks 3 (a launcher started 8)\n");
  EXPECT_EQ(told(tiny({"--ranks", "8"})).err, "");
}

TEST(Train, refuses_an_environment_that_contradicts_itself) {
  const Variable world("WORLD_SIZE", "4"), rank("RANK", "4");
  const Told t = told(tiny());
  EXPECT_EQ(t.status, 2);
  EXPECT_EQ(t.err, "environment: RANK 4 is not below WORLD_SIZE 4\n");
}

TEST(Train, takes_the_ranks_that_mpirun_started) {
  const Variable world("PMI_SIZE", "4"), rank("PMI_RANK", "0");
  const Told t = told(tiny({"--tensor-model-parallel-size", "3"}));
  EXPECT_EQ(t.status, 2);
  EXPECT_THAT(t.err, HasSubstr("4 ranks cannot be shared out"));
  const Variable other("WORLD_SIZE", "8");
  EXPECT_EQ(told(tiny()).err,
            "environment: PMI_SIZE is 4 and WORLD_SIZE is 8; unset what the other launcher left\n");
}

TEST(Train, does_not_train_alone_as_one_of_many_that_it_cannot_reach) {
  const Variable world("WORLD_SIZE", "4"), rank("RANK", "1");
  auto words = tiny();
  std::erase(words, "--dry-run");
  EXPECT_EQ(
      told(words).err,
      "train: RANK says that this is one of 4 processes, and MASTER_ADDR and MASTER_PORT do not say where "
      "they "
      "meet; start them with weft launch, mpirun, srun or torchrun, or unset RANK for ranks as threads\n");
}

TEST(Train, needs_a_model_that_it_knows) {
  EXPECT_EQ(told({"train"}).err, "train: name the model: weft train gpt …; weft help train shows examples\n");
  EXPECT_EQ(told({"train", "gtp"}).err,
            "train: 'gtp' is not a model; write weft train gpt or weft train bert or weft train t5\n");
  EXPECT_EQ(told(tiny({"stray"})).status, 2);
  EXPECT_EQ(told(tiny({"--lr", "1", "stray"})).err, "train: 'stray' follows no flag that takes it\n");
}

TEST(Train, shows_examples_before_options) {
  const std::string out = told({"help", "train"}).out;
  EXPECT_LT(out.find("examples:"), out.find("Model:"));
  EXPECT_THAT(out, HasSubstr("  --num-layers N                  transformer blocks; T5: of the encoder\n"));
  EXPECT_THAT(out,
              HasSubstr("  --adam-beta2 X                  decay of the second moment (default 0.999)\n"));
}

TEST(Train, takes_the_tokenizer_of_megatrons_program_where_its_files_are_named) {
  const std::string vocab = WEFT_SOURCE_DIR "/tests/golden/text/toy_bpe_vocab.json",
                    merges = WEFT_SOURCE_DIR "/tests/golden/text/toy_bpe_merges.txt";
  const Json j = Json::parse(told(tiny({"--vocab-file", vocab, "--merge-file", merges, "--json"})).out);
  EXPECT_EQ(j["settings"]["data"]["tokenizer"]["type"],
            Json({{"value", "GPT2BPETokenizer"}, {"origin", "derived"}}));
  EXPECT_EQ(told(tiny({"--vocab-file", vocab})).err, "GPT2BPETokenizer needs --merge-file\n");
  EXPECT_EQ(usual_tokenizer("bert"), "BertWordPieceLowerCase");
  EXPECT_EQ(usual_tokenizer("t5"), "BertWordPieceLowerCase");
}

TEST(Train, needs_a_tokenizer_for_a_sample_before_it_trains) {
  const Told t = told(tiny({"--sample-prompt", "Once"}));
  EXPECT_EQ(t.status, 2);
  EXPECT_EQ(
      t.err,
      "--sample-prompt needs a tokenizer, and --vocab-size alone is none: give --tokenizer-type with its "
      "files\n");
}

TEST(Train, says_which_flags_do_nothing_without_another) {
  const auto said = [](std::vector<std::string_view> more) { return told(tiny(std::move(more))).err; };
  EXPECT_EQ(said({"--save-interval", "5"}),
            "no effect here: --save-interval (only --save writes checkpoints)\n");
  EXPECT_EQ(
      said({"--decoupled-min-lr", "1e-5"}),
      "no effect here: --decoupled-min-lr (only --decoupled-lr gives the embedding a rate of its own)\n");
  EXPECT_EQ(said({"--sequence-parallel", "--yarn-beta-fast", "3"}),
            "no effect here: --yarn-beta-fast (only --position-embedding-type yarn reads it)\n"
            "no effect here: --sequence-parallel (only --tensor-model-parallel-size gives ranks to cut the "
            "sequence over)\n");
}

TEST(Train, says_that_yarn_by_one_is_plain_and_takes_megatrons_length) {
  const Told alone = told(tiny({"--position-embedding-type", "yarn"}));
  EXPECT_THAT(alone.err, HasSubstr("no effect here: --position-embedding-type yarn (by a factor of 1"));
  const Told t = told(tiny({"--position-embedding-type", "yarn", "--rotary-scaling-factor", "4", "--json"}));
  EXPECT_EQ(t.err, "");
  EXPECT_EQ(Json::parse(t.out)["settings"]["model"]["rotary"]["original_positions"]["value"], 4096);
}

TEST(Train, refuses_heads_whose_channels_cannot_turn_in_pairs) {
  EXPECT_EQ(told(tiny({"--position-embedding-type", "rope", "--kv-channels", "7"})).err,
            "rotary positions turn channels in pairs, and 7 of a head's 7 would turn: --kv-channels and "
            "--rotary-percent must give an even number\n");
}

TEST(Train, tells_first_what_a_run_will_need) {
  const std::string out = told(tiny()).out;
  EXPECT_THAT(out, testing::StartsWith("120.2 k parameters (120192); a step learns from 256 tokens in "));
  EXPECT_THAT(out, HasSubstr("most memory of"));
  EXPECT_THAT(out, HasSubstr("  a run on this machine needs "));
  EXPECT_LT(out.find("stage 0"), out.find("\nmodel\n"));
}

TEST(Train, refuses_what_cannot_fit_before_it_takes_any_memory) {
  std::vector<std::string_view> words = tiny({"--kv-channels", "250000000"});
  words.erase(std::find(words.begin(), words.end(), "--dry-run"));
  std::replace(words.begin(), words.end(), std::string_view("64"), std::string_view("1000000000"));
  words[std::size_t(std::find(words.begin(), words.end(), "--seq-length") - words.begin()) + 1] = "64";
  const Told t = told(words);
  EXPECT_EQ(t.status, 2);
  EXPECT_THAT(t.err, testing::StartsWith("this run needs more than "));
  EXPECT_THAT(t.err, HasSubstr("; --hidden-size "));
  EXPECT_THAT(t.err, testing::EndsWith("; --no-memory-check starts all the same\n"));
}

namespace {

/// The most memory of such a run in MiB, as its plan says, and as it says itself after its last step.
void expect_planned(const std::vector<std::string_view>& more) {
  std::vector<std::string_view> words = tiny({"--data-order", "keyed", "--train-iters", "2", "--threads", "1",
                                              "--log-memory-interval", "1", "--json"});
  words.insert(words.end() - 1, more.begin(), more.end());
  const auto planned = Json::parse(told(words).out)["plan"]["memory"][0]["at_once"].get<double>();
  words.pop_back();
  words.erase(std::find(words.begin(), words.end(), "--dry-run"));
  const Told t = told(words);
  ASSERT_EQ(t.status, 0) << t.err;
  std::smatch found;
  ASSERT_TRUE(
      std::regex_search(t.err, found, std::regex("after step 2: .* allocated, ([0-9.]+) MiB at most")));
  EXPECT_NEAR(planned / (1 << 20), std::stod(found[1]), 0.02 * std::stod(found[1]));
}

}  // namespace

TEST(Train, plans_the_memory_that_the_run_then_takes) { expect_planned({}); }

TEST(Train, plans_the_memory_that_its_evaluations_then_take) {
  expect_planned({"--eval-interval", "1", "--eval-iters", "1", "--eval-micro-batch-size", "40",
                  "--eval-global-batch-size", "80"});
}
