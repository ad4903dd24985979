// Messages name fields, and the person reads the flag or key that they used.
#include "weft/cli/dialect/spelling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>

#include "tests/support/source_dir.h"

using namespace weft;
using namespace weft::cli;

TEST(Spelling, takes_the_first_flag_of_a_field_that_nobody_set) {
  EXPECT_EQ(spelled("{batch.micro} is not set"), "--micro-batch-size is not set");
  EXPECT_EQ(spelled("{parallel.zero} 7, {parallel.sequence}"), "--zero-stage 7, --sequence-parallel");
  EXPECT_EQ(spelled("{parallel.zero=3} {scaling.sum_in_bf16=true}"),
            "--zero-stage 3 --main-grads-dtype bf16");
  EXPECT_EQ(spelled("{batch.global}, {model.rotary.factor}"), "--global-batch-size, --rope-scaling-factor");
  EXPECT_EQ(spelled("give {vocab_file} or {json_keys}"), "give --vocab-file or --json-keys");
}

TEST(Spelling, knows_which_flag_gives_a_value) {
  EXPECT_EQ(spelled("add {model.precision=f16}"), "add --fp16");
  EXPECT_EQ(spelled("{checkpoint.load_optimizer=false}"), "--no-load-optim");
  EXPECT_EQ(spelled("{parallel.context=heads}"), "--cp-comm-type a2a");
  EXPECT_EQ(spelled("{model.rotary.scaling=yarn}"), "--position-embedding-type yarn");
  EXPECT_EQ(spelled("{model.recompute.what=full}"), "--recompute-granularity full");
  EXPECT_EQ(spelled("{data.index=keyed}"), "--data-order keyed");
}

TEST(Spelling, knows_which_switch_comes_to_a_value_by_arithmetic) {
  EXPECT_EQ(spelled("{model.activation=gelu_erf}"), "--no-bias-gelu-fusion");
  EXPECT_EQ(spelled("{model.activation=gelu}"), "--openai-gelu");  // --geglu gates it besides
}

TEST(Spelling, gives_no_switch_a_word) {
  EXPECT_EQ(spelled("{model.activation=tanh}"), "{model.activation=tanh}");
}

TEST(Spelling, leaves_braces_that_hold_no_setting) {
  EXPECT_EQ(spelled("a {b} {no.such.field} { {batch.micro} }"),
            "a {b} {no.such.field} { --micro-batch-size }");
  EXPECT_EQ(spelled("{batch.micro"), "{batch.micro");
}

TEST(Spelling, calls_a_setting_as_the_command_did) {
  const auto command = read_command(std::vector<std::string_view>{"--num-layers-in-first-pipeline-stage", "1",
                                                                  "--use-distributed-optimizer"});
  EXPECT_EQ(spelled("{parallel.first_stage_layers}, {parallel.zero}", command.get()),
            "--num-layers-in-first-pipeline-stage, --use-distributed-optimizer");
  EXPECT_EQ(wording(*command)("{parallel.zero}"), "--use-distributed-optimizer");
}

TEST(Spelling, means_a_switch_that_is_on) {
  EXPECT_EQ(spelled("add {checkpoint.allow_fresh_start}"), "add --allow-fresh-start");
  const auto command = read_command(std::vector<std::string_view>{"--exit-on-missing-checkpoint"});
  EXPECT_EQ(spelled("add {checkpoint.allow_fresh_start}", command.get()), "add --allow-fresh-start");
}

TEST(Spelling, calls_a_setting_of_a_file_by_its_key) {
  const std::string path = testing::TempDir() + "spelling.yaml";
  std::ofstream(path) << "micro-batch-size: 3\n";
  const auto command = read_command(std::vector<std::string_view>{"--config", path});
  std::filesystem::remove(path);
  EXPECT_EQ(spelled("{batch.micro} 3, {batch.global}", command.get()),
            "micro-batch-size 3, --global-batch-size");
}

TEST(Spelling, keeps_the_kind_of_what_was_thrown) {
  const auto command = read_command(std::vector<std::string_view>{"--fp16"});
  try {
    in_words_of(*command, [] { fail(Kind::data, "{model.precision} is odd"); });
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Kind::data);
    EXPECT_STREQ(e.what(), "--fp16 is odd");
  }
}

namespace {

/// "{model.precision=f16}", wherever a sentence of weft says it.
std::vector<std::string> settings_in_messages() {
  const std::regex named(R"(\{[a-z]+(\.[a-z0-9_]+)+(=[\w.]+)?\})");
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(WEFT_SOURCE_DIR "/weft")) {
    if (entry.path().extension() != ".cpp") continue;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);)
      for (auto at = std::sregex_iterator(line.begin(), line.end(), named); at != std::sregex_iterator();
           ++at)
        if (std::count(line.begin(), line.begin() + at->position(), '"') % 2 == 1) found.push_back(at->str());
  }
  return found;
}

}  // namespace

TEST(Spelling, knows_every_field_that_a_message_below_names) {
  const std::vector<std::string> named = settings_in_messages();
  for (const std::string& one : named) EXPECT_THAT(spelled(one), testing::StartsWith("--")) << one;
  EXPECT_GT(named.size(), 150U);
}

TEST(Spelling, gives_flags_that_set_the_value_which_a_message_names) {
  int read = 0;
  for (const std::string& one : settings_in_messages()) {
    const std::size_t equals = one.find('=');
    if (equals == std::string::npos) continue;
    const std::string flags = spelled(one), value = one.substr(equals + 1, one.size() - equals - 2);
    std::vector<std::string_view> words{flags};
    if (const std::size_t space = flags.find(' '); space != std::string::npos)
      words = {std::string_view(flags).substr(0, space), std::string_view(flags).substr(space + 1)};
    const auto command = read_command(words);
    EXPECT_THAT(command->fields.at(one.substr(1, equals - 1)).write(), testing::ElementsAre(value)) << flags;
    ++read;
  }
  EXPECT_GT(read, 30);
}

TEST(Spelling, finds_no_flag_in_a_message_below) {
  const std::regex literal(R"("(?:[^"\\]|\\.)*")"), flag(R"(--[a-z][a-z-]+)");
  int read = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(WEFT_SOURCE_DIR "/weft")) {
    const std::string path = entry.path().string();
    // The launcher's words are its own, and so are a job file's: they spell them themselves.
    const auto below = [&](const char* room) { return path.find(room) != std::string::npos; };
    if (below("/weft/cli/") || below("/weft/launch/") || below("/weft/jobs/")) continue;
    if (entry.path().extension() != ".cpp" && entry.path().extension() != ".h") continue;
    ++read;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      line = line.substr(0, line.find("//"));
      for (auto at = std::sregex_iterator(line.begin(), line.end(), literal); at != std::sregex_iterator();
           ++at)
        EXPECT_FALSE(std::regex_search(at->str(), flag)) << path << ": " << at->str();
    }
  }
  EXPECT_GT(read, 300);
}
