// What people who come from Megatron-LM type: every flag is known, whatever weft does about it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "tests/support/source_dir.h"
#include "weft/base/error.h"
#include "weft/base/flags.h"
#include "weft/cli/dialect.h"
#include "weft/cli/dialect/rows.h"

using namespace weft;
using namespace weft::cli;

namespace {

using Words = std::vector<std::string_view>;

/// Of megatron_flags.txt, whose lines of notes begin with #.
std::vector<std::string> flags_of_megatron() {
  std::ifstream in(WEFT_SOURCE_DIR "/tests/cli/megatron_flags.txt");
  std::vector<std::string> out;
  for (std::string line, name; std::getline(in, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream words(line);
    while (words >> name) out.push_back(dashed(name));
  }
  return out;
}

CheckpointConfig checkpoint_of(const Words& words) { return read_command(words)->config.checkpoint; }

std::string refusal(const Words& words) {
  try {
    (void)read_command(words);
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing";
}

}  // namespace

TEST(MegatronsFlags, are_all_known) {
  std::set<std::string> known{"config"};
  for (const dialect::Group& group : dialect::table())
    for (const dialect::Row& row : group.rows)
      EXPECT_TRUE(known.insert(dashed(row.flag)).second) << row.flag << " is there twice";
  const std::vector<std::string> theirs = flags_of_megatron();
  EXPECT_GT(theirs.size(), 1000U);
  for (const std::string& flag : theirs) EXPECT_TRUE(known.contains(flag)) << flag;
}

TEST(MegatronsFlags, that_are_gone_stand_for_no_beginning_of_others) {
  EXPECT_EQ(refusal({"--moe-frequency", "2"}),
            "--moe-frequency is gone from Megatron-LM; write --moe-layer-freq");
  EXPECT_THAT(refusal({"--moe-freq", "2"}), ::testing::StartsWith("--moe-freq is not a flag"));
}

TEST(MegatronsFlags, save_more_often_and_keep_the_newest_of_these) {
  const CheckpointConfig both =
      checkpoint_of({"--non-persistent-save-interval", "5", "--save-interval", "20"});
  EXPECT_EQ(both.interval, 5);
  EXPECT_EQ(both.retain_interval, 20);
  EXPECT_EQ(both.keep_last, 0);
  const CheckpointConfig alone = checkpoint_of({"--non-persistent-save-interval", "5"});
  EXPECT_EQ(alone.interval, 5);
  EXPECT_EQ(alone.retain_interval, 0);
  EXPECT_EQ(alone.keep_last, 1);
  EXPECT_EQ(checkpoint_of({"--non-persistent-save-interval", "5", "--save-keep-last", "3"}).keep_last, 3);
  EXPECT_EQ(refusal({"--non-persistent-save-interval", "7", "--save-interval", "20"}),
            "--non-persistent-save-interval: --save-interval 20 is not a multiple of it: saves of both kinds "
            "lie in --save");
  EXPECT_EQ(refusal({"--non-persistent-save-interval", "5", "--save-retain-interval", "20"}),
            "--non-persistent-save-interval: --save-retain-interval says which checkpoints stay, too: leave "
            "one of them out");
  for (const char* wrong : {"0", "-5", "()", "1 2"})
    EXPECT_EQ(refusal({"--non-persistent-save-interval", wrong}),
              "--non-persistent-save-interval: expected one number of 1 or more")
        << wrong;
}
