#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/cli/told.h"
#include "tests/support/says.h"
#include "tests/support/temporary.h"
#include "weft/cli/launch_program.h"
#include "weft/cli/verbs.h"

using namespace weft;
using namespace weft::cli;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

Program program(std::string name, std::vector<std::string> arguments,
                const launch::Environment& environment = {}) {
  launch::Options options;
  options.program = std::move(name);
  options.arguments = std::move(arguments);
  return program_of(options, environment);
}

}  // namespace

TEST(Launch, knows_megatrons_scripts_and_wefts_verb) {
  for (const Program& p : {program("old/pretrain_gpt.py", {"--num-layers", "2"}),
                           program("train", {"gpt", "--num-layers", "2"})}) {
    EXPECT_TRUE(p.trains);
    EXPECT_THAT(p.words, ElementsAre("train", "gpt", "--num-layers", "2"));
  }
  EXPECT_THAT(program("pretrain_t5.py", {}).words, ElementsAre("train", "t5"));
}

TEST(Launch, knows_megatrons_scripts_for_layers_of_one_thing_each) {
  for (const char* script : {"../../pretrain_hybrid.py", "pretrain_mamba.py"})
    EXPECT_THAT(program(script, {"--hybrid-layer-pattern", "M-M*"}).words,
                ElementsAre("train", "gpt", "--hybrid-layer-pattern", "M-M*"));
  EXPECT_THAT(
      [] {
        (void)program("x/pretrain_mamba.py", {"--num-layers", "2"});
      },
      testing::ThrowsMessage<Error>(
          "launch: pretrain_mamba.py trains layers of one thing each, and nothing says which: give "
          "--hybrid-layer-pattern, a letter a layer, M for a state space"));
}

TEST(Launch, runs_other_scripts_by_python_and_programs_as_they_are) {
  EXPECT_THAT(program("a.py", {"-x"}).words, ElementsAre("python3", "-u", "a.py", "-x"));
  EXPECT_THAT(program("a.py", {}, {{"PYTHON_EXEC", "pypy"}}).words, ElementsAre("pypy", "-u", "a.py"));
  EXPECT_THAT(program("./a", {"b"}).words, ElementsAre("./a", "b"));
  launch::Options options{.python = false, .program = "pretrain_gpt.py"};
  EXPECT_THAT(program_of(options, {}).words, ElementsAre("pretrain_gpt.py"));
}

TEST(Launch, goes_on_from_where_training_saves_whatever_it_loaded_first) {
  const Program p = program(
      "train", {"gpt", "--save", "here", "--load=there", "--finetune", "--ckpt_step", "7", "--lr", "1"});
  EXPECT_FALSE(p.resumes);
  EXPECT_THAT(words_to_go_on(p),
              ElementsAre("train", "gpt", "--save", "here", "--lr", "1", "--load", "here"));
  const Program same = program("train", {"gpt", "--save", "here", "--load", "here"});
  EXPECT_EQ(words_to_go_on(same), same.words);
  EXPECT_EQ(words_to_go_on(program("train", {"gpt", "--save", "here", "--load", "here", "--ckpt-step", "4"})),
            same.words);
  const Program once = program("train", {"gpt", "--save", "here", "--load", "there", "--no-load-optim",
                                         "--no_load_rng", "--moe-use-upcycling"});
  EXPECT_THAT(words_to_go_on(once), ElementsAre("train", "gpt", "--save", "here", "--load", "here"));
}

TEST(Launch, counts_progress_in_complete_steps) {
  const support::TemporaryDirectory folder;
  EXPECT_EQ(newest_step(program("train", {"gpt", "--save", folder.path().string()})), 0);
  EXPECT_EQ(newest_step(program("train", {"gpt"})), -1);
}

TEST(Launch, says_what_cannot_be_launched) {
  const support::TemporaryDirectory folder;
  const std::string hosts = (folder / "hosts").string();
  std::ofstream(hosts) << "a slots=2\nb slots=2\n";
  const auto says = [](std::vector<std::string> words) { return told(launch_verb(), std::move(words)).err; };
  EXPECT_EQ(says({"--hostfile", hosts, "--num_nodes", "3", "x"}),
            "launch: --num-nodes 3, and " + hosts + " names 2\n");
  EXPECT_EQ(says({"train"}), "launch: name the model: weft launch … train gpt …\n");
  EXPECT_THAT(says({"train", "gpt", "--num-layerz", "2"}), HasSubstr("--num-layers"));
}

TEST(Launch, says_at_the_start_which_number_of_nodes_could_not_train) {
  const auto says = [](std::string nodes, std::string batch, std::string tp) {
    launch::Options options{.nodes = launch::read_nodes("x", nodes), .per_node = 2, .program = "train"};
    options.arguments = {"gpt", "--num-layers",
                         "1",   "--hidden-size",
                         "16",  "--num-attention-heads",
                         "4",   "--seq-length",
                         "16",  "--micro-batch-size",
                         "2",   "--global-batch-size",
                         batch, "--tensor-model-parallel-size",
                         tp};
    return support::says([&] { static_cast<void>(program_of(options, {})); });
  };
  EXPECT_EQ(says("1:3", "12", "2"), "nothing");
  EXPECT_EQ(
      says("1:3", "8", "2"),
      "usage: launch: --nnodes 1:3, and on 3 nodes of 2 ranks training would say: global batch size 8 is not "
      "a multiple of micro batch size times data-parallel ranks, 6; the next smaller is 6");
  EXPECT_EQ(
      says("1:2", "8", "4"),
      "usage: launch: --nnodes 1:2, and on 1 node of 2 ranks training would say: 2 ranks cannot be shared "
      "out: tensor 4 times pipeline 1 times context 1 is 4; take a multiple of 4 ranks");
  EXPECT_EQ(says("3", "8", "2"), "nothing") << "its ranks say so, before they begin";
}

TEST(Launch, shows_examples_and_options_by_topic) {
  const std::string help = told(launch_verb(), {"--help"}).out;
  EXPECT_LT(help.find("examples:"), help.find("Ranks and nodes:"));
  EXPECT_LT(help.find("Ranks and nodes:"), help.find("Faults:"));
  EXPECT_THAT(help, HasSubstr("  --redirects, -r 0|1|2|3"));
}
