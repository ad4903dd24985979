// weft checkpoint list, show and verify: what they print, and how they fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/support/plain_device.h"
#include "tests/support/temporary.h"
#include "weft/checkpoint/find.h"
#include "weft/checkpoint/save.h"
#include "weft/cli/verbs.h"
#include "weft/comm/solo.h"
#include "weft/tensor/host.h"

using namespace weft;
using namespace weft::cli;
using support::TemporaryDirectory;
using ::testing::HasSubstr;
using Json = nlohmann::json;

namespace {

struct Told {
  int status;
  std::string out, err;
};

Told told(std::vector<std::string> words) {
  words.insert(words.begin(), "checkpoint");
  const std::vector<std::string_view> views(words.begin(), words.end());
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const Verb known[]{checkpoint_verb()};
  const int status = run(known, views);
  return {status, ::testing::internal::GetCapturedStdout(), ::testing::internal::GetCapturedStderr()};
}

class CheckpointVerb : public ::testing::Test {
 protected:
  CheckpointVerb() {
    weft::testing::PlainDevice device;
    SoloCommunicator world;
    const std::vector<checkpoint::Named> mine{
        checkpoint::whole("w", from_host<float>(device, {2, 3}, {1, 2, 3, 4, 5, 6}))};
    for (const std::int64_t step : {100, 200})
      checkpoint::save(checkpoint::step_directory(folder.path(), step), mine, R"({"tokens":12})", world);
  }
  void damage() const {
    std::ofstream(folder.path() / "step_00000200" / "rank_00000.safetensors", std::ios::app) << "x";
  }
  std::string root() const { return folder.path().string(); }
  TemporaryDirectory folder;
};

}  // namespace

TEST_F(CheckpointVerb, lists_a_line_a_step_and_why_one_is_not_complete) {
  damage();
  const Told t = told({"list", root()});
  EXPECT_EQ(t.status, 0) << t.err;
  EXPECT_THAT(t.out, HasSubstr("100         "));
  EXPECT_THAT(t.out, HasSubstr("1 tensors in 1 files"));
  EXPECT_THAT(t.out, HasSubstr("200         " + root() + "/step_00000200/rank_00000.safetensors: holds "));
  const Json json = Json::parse(told({"list", "--json", root()}).out);
  EXPECT_EQ(json["steps"][0]["step"], 100);
  EXPECT_EQ(json["steps"][0]["complete"], true);
  EXPECT_EQ(json["steps"][1]["complete"], false);
}

TEST_F(CheckpointVerb, shows_the_newest_complete_step_of_a_root_and_says_what_it_passed_over) {
  const Told before = told({"show", root()});
  EXPECT_THAT(before.out, HasSubstr("step_00000200\n"));
  EXPECT_THAT(before.out, HasSubstr("  w  f32 [2, 3]  1 block\n"));
  EXPECT_THAT(before.out, HasSubstr("\"tokens\": 12"));
  damage();
  const Told after = told({"show", "--json", root()});
  EXPECT_EQ(Json::parse(after.out)["directory"], root() + "/step_00000100");
  EXPECT_EQ(Json::parse(after.out)["facts"]["tokens"], 12);
  EXPECT_THAT(after.err, HasSubstr("step 200 is passed over: "));
}

TEST_F(CheckpointVerb, verifies_every_step_of_a_root_and_fails_where_one_is_damaged) {
  const Told before = told({"verify", root()});
  EXPECT_EQ(before.status, 0) << before.err;
  EXPECT_EQ(before.out, root() + "/step_00000100: every hash is right: 1 tensors, 1 blocks, 24 B\n" + root() +
                            "/step_00000200: every hash is right: 1 tensors, 1 blocks, 24 B\n");
  damage();
  const Told after = told({"verify", root()});
  EXPECT_EQ(after.status, 2);
  EXPECT_THAT(after.out, HasSubstr("rank_00000.safetensors: holds "));
  EXPECT_EQ(after.err, "checkpoint verify: 1 of 2 steps are damaged or unfinished\n");
}

TEST_F(CheckpointVerb, says_what_it_cannot_do) {
  EXPECT_EQ(told({}).err, "checkpoint: expected list, show, verify\n");
  EXPECT_THAT(told({"vrify"}).err, HasSubstr("checkpoint: 'vrify' is none of list, show, verify"));
  EXPECT_EQ(told({"list"}).err, "checkpoint list: 0 directories are named, expected one\n");
  EXPECT_EQ(told({"show", root() + "/none"}).err, "checkpoint show: " + root() + "/none is no directory\n");
  EXPECT_EQ(told({"list", root() + "/step_00000100"}).err,
            "checkpoint list: " + root() + "/step_00000100 holds no directory of a step\n");
}
