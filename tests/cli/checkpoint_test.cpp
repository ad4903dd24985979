// weft checkpoint list, show and verify: what they print, and how they fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/cli/told.h"
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

Told told(std::vector<std::string> words) {
  words.insert(words.begin(), "checkpoint");
  const std::vector<std::string_view> views(words.begin(), words.end());
  const Verb known[]{checkpoint_verb()};
  return run_and_hear(views, known);
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
  EXPECT_EQ(t.status, 2);
  EXPECT_EQ(t.err, "checkpoint list: 1 of 2 steps were complete and are damaged\n");
  EXPECT_THAT(t.out, HasSubstr("100         "));
  EXPECT_THAT(t.out, HasSubstr("1 tensors in 1 files"));
  EXPECT_THAT(t.out, HasSubstr("200         " + root() + "/step_00000200/rank_00000.safetensors: holds "));
  const Json json = Json::parse(told({"list", "--json", root()}).out);
  EXPECT_EQ(json["steps"][0]["step"], 100);
  EXPECT_EQ(json["steps"][0]["complete"], true);
  EXPECT_EQ(json["steps"][1]["complete"], false);
  EXPECT_EQ(json["steps"][1]["damaged"], true);
}

TEST_F(CheckpointVerb, lists_a_step_that_is_being_saved_without_calling_it_damaged) {
  std::filesystem::remove(folder / "step_00000200/COMPLETE");
  const Told t = told({"list", root()});
  EXPECT_EQ(t.status, 0) << t.err;
  EXPECT_THAT(t.out, HasSubstr("step_00000200: no complete checkpoint, its mark COMPLETE is missing\n"));
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
  EXPECT_EQ(told({}).err, "checkpoint: expected list, show, verify, diff, prune, convert\n");
  EXPECT_THAT(told({"vrify"}).err, HasSubstr("checkpoint: 'vrify' is none of list, show, verify"));
  EXPECT_EQ(told({"list"}).err, "checkpoint list: 0 directories are named, expected one\n");
  EXPECT_EQ(told({"show", root() + "/none"}).err, "checkpoint show: " + root() + "/none is not there\n");
  EXPECT_EQ(told({"list", root() + "/step_00000100"}).err,
            "checkpoint list: " + root() + "/step_00000100 holds no directory of a step\n");
}

namespace {

/// A step beside the fixture's, with other values and facts.
void save_other(const std::filesystem::path& root, const std::vector<checkpoint::Named>& mine) {
  SoloCommunicator world;
  checkpoint::save(checkpoint::step_directory(root, 200), mine, R"({"tokens":13,"losses":[]})", world);
}

}  // namespace

TEST_F(CheckpointVerb, diffs_tensors_and_facts) {
  EXPECT_EQ(told({"diff", root(), root() + "/step_00000100"}).status, 0);
  const TemporaryDirectory other;
  weft::testing::PlainDevice device;
  save_other(other.path(), {checkpoint::whole("w", from_host<float>(device, {2, 3}, {1, 2, 3, 4, 5, 6.5})),
                            checkpoint::whole("b", from_host<float>(device, {1}, {0}))});
  const Told t = told({"diff", root(), other.path().string()});
  EXPECT_EQ(t.status, 1);
  EXPECT_EQ(t.out,
            "b  f32 [1]  only in the second\n"
            "w  1 of 6 differ, by at most 0.5, relative to its norm 0.05241\n"
            "tokens  12 and 13\n"
            "2 of 2 tensors differ, and 1 facts\n");
  const Json j = Json::parse(told({"diff", "--json", root(), other.path().string()}).out);
  EXPECT_EQ(j["tensors"]["w"]["differing"], 1);
  EXPECT_EQ(j["facts"]["tokens"], Json({12, 13}));
}

TEST_F(CheckpointVerb, diffs_shapes_before_values) {
  const TemporaryDirectory other;
  weft::testing::PlainDevice device;
  save_other(other.path(), {checkpoint::whole("w", from_host<float>(device, {3}, {1, 2, 3}))});
  EXPECT_THAT(told({"diff", root(), other.path().string()}).out, HasSubstr("w  f32 [2, 3] and f32 [3]\n"));
}

TEST_F(CheckpointVerb, prunes_what_no_rule_keeps) {
  const Told dry = told({"prune", root(), "--keep-last", "1", "--dry-run"});
  EXPECT_EQ(dry.out, "would delete steps 100\n");
  EXPECT_EQ(told({"prune", root(), "--keep-last", "1", "--keep-every", "100"}).out, "nothing to delete\n");
  EXPECT_EQ(told({"prune", root(), "--keep-last", "1", "--keep-steps", "100", "--json"}).out,
            "{\"deleted\":[]}\n");
  EXPECT_EQ(told({"prune", root(), "--keep-last", "1"}).out, "deleted steps 100\n");
  EXPECT_EQ(checkpoint::step_directories(folder.path()).size(), 1U);
}

TEST_F(CheckpointVerb, does_not_prune_without_being_told_what_to_keep) {
  EXPECT_EQ(told({"prune", root()}).err,
            "checkpoint prune: say how many to keep: --keep-last N, with N at least 1, found 0\n");
  const TemporaryDirectory nothing;
  EXPECT_EQ(told({"prune", nothing.path().string(), "--keep-last", "1"}).err,
            "checkpoint prune: " + nothing.path().string() + " holds no directory of a step\n");
  EXPECT_EQ(told({"diff", root()}).err, "checkpoint diff: 1 directories are named, expected two\n");
  EXPECT_EQ(told({"diff", root(), "/nowhere"}).err, "checkpoint diff: /nowhere is not there\n");
}
