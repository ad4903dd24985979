// weft schedule, as a person sees it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/told.h"
#include "tests/support/temporary.h"
#include "weft/base/file.h"
#include "weft/cli/verb.h"

using namespace weft::cli;
using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::json;

namespace {

Told told(std::vector<std::string_view> words) {
  words.insert(words.begin(), "schedule");
  return run_and_hear(words);
}

}  // namespace

TEST(ScheduleVerb, draws_1f1b_unless_told_otherwise) {
  const Told t = told({"--ranks", "2", "--microbatches", "3"});
  EXPECT_EQ(t.status, 0) << t.err;
  EXPECT_EQ(t.out,
            "1f1b: 2 ranks, 3 microbatches, 12 units of time, 25.0 % of all ranks' time is bubble\n"
            "\n"
            "time    0              5              10\n"
            "rank 0  F0 F1 ·  ·  B0─── F2 B1─── ·  B2───\n"
            "rank 1  ·  F0 B0─── F1 B1─── F2 B2─── ·  ·\n"
            "\n"
            "        remembers at most  waits\n"
            "rank 0     2.0 microbatches  25.0 %\n"
            "rank 1     1.0 microbatches  25.0 %\n");
}

TEST(ScheduleVerb, compares_all_schedules_over_the_same_work) {
  EXPECT_EQ(told({"--compare", "--ranks", "4", "--microbatches", "8"}).out,
            "schedule     stages  time a step  bubble  remembers at most\n"
            "gpipe             4         33.0  27.3 %   8.0 microbatches\n"
            "1f1b              4         33.0  27.3 %   4.0 microbatches\n"
            "interleaved       8         28.5  15.8 %   5.5 microbatches\n"
            "zb-h1             4         27.0  11.1 %   4.0 microbatches\n"
            "zb-v              8         25.5   5.9 %   4.0 microbatches\n");
  EXPECT_THAT(told({"--compare", "--ranks", "4", "--microbatches", "2"}).out,
              HasSubstr("interleaved  interleaved: 2 microbatches in groups of 2 leave a group smaller than "
                        "4 ranks\n"));
}

TEST(ScheduleVerb, tells_programs_every_computation) {
  const Json all = Json::parse(told({"zb-h1", "--ranks=2", "--microbatches=2", "--json"}).out);
  EXPECT_EQ(all["stages"], Json({0, 1}));
  EXPECT_EQ(all["duration"], 7);
  EXPECT_EQ(all["computations"].size(), 12U);
  EXPECT_EQ(
      all["computations"][0],
      Json({{"rank", 0}, {"stage", 0}, {"microbatch", 0}, {"what", "forward"}, {"begin", 0}, {"end", 1}}));
}

TEST(ScheduleVerb, writes_text_that_it_draws_again) {
  const weft::support::TemporaryDirectory folder;
  const std::string path = (folder / "mine.txt").string();
  EXPECT_EQ(told({"zb-v", "--ranks=2", "--microbatches=5", "--write", path}).out, "");
  const Json own = Json::parse(told({path, "--json"}).out);
  const Json again = Json::parse(told({"zb-v", "--ranks=2", "--microbatches=5", "--json"}).out);
  EXPECT_EQ(own["computations"], again["computations"]);
  EXPECT_THAT(told({path, "--ranks", "3"}).err,
              HasSubstr(path + ": written for 2 pipeline ranks, 3 are here"));
}

TEST(ScheduleVerb, draws_a_picture_into_a_file) {
  const weft::support::TemporaryDirectory folder;
  const std::string path = (folder / "a.svg").string();
  EXPECT_EQ(told({"gpipe", "--svg", path}).out, "");
  EXPECT_THAT(weft::read_file(path), HasSubstr("gpipe: 4 ranks, 8 microbatches"));
}

TEST(ScheduleVerb, refuses_what_it_cannot_draw) {
  const auto no = [](std::vector<std::string_view> words) {
    const Told t = told(std::move(words));
    EXPECT_EQ(t.status, 2);
    return t.err;
  };
  EXPECT_THAT(no({"--forward", "0"}), HasSubstr("--forward: '0' is not a whole number from 1 to 1000"));
  EXPECT_THAT(no({"gpipe", "1f1b"}), HasSubstr("schedule: one name, found gpipe and 1f1b"));
  EXPECT_THAT(no({"--ranks", "4096", "--microbatches", "4096"}),
              HasSubstr("schedule: 4096 ranks times 4096 microbatches are more than anybody can look at"));
  EXPECT_THAT(no({"--ranks", "2000000000"}),
              HasSubstr("schedule: 2000000000 ranks times 1 microbatches are more than anybody can look at"));
  EXPECT_THAT(no({"zbv"}), HasSubstr("did you mean zb-v"));
}

// Megatron's worked example: spec of ranks with tp 2, cp 2, pp 2, ep 4 and etp 1.
TEST(ScheduleVerb, shows_who_sits_where_to_dense_layers_and_to_experts) {
  const std::string out =
      told({"--places", "--ranks=2", "--tp=2", "--cp=2", "--dp=2", "--ep=4", "--etp=1"}).out;
  EXPECT_THAT(out,
              HasSubstr("16 ranks, 2 stages of tp 2, cp 2, dp 2; experts see a stage's 8 as etp 1, ep 4, "
                        "edp 2\n\nstage 0\n rank     tp   cp   dp    etp   ep  edp\n"
                        "    0      0    0    0      0    0    0\n"
                        "    1      1    0    0      0    1    0\n"));
  EXPECT_THAT(out, HasSubstr("   14      0    1    1      0    2    1\n"));
  EXPECT_THAT(
      out,
      HasSubstr("etp, ep  tokens travel to experts       0 1 2 3 | 4 5 6 7 | 8 9 10 11 | 12 13 14 15\n"));
  EXPECT_THAT(
      out, HasSubstr("edp      experts' gradients are added   0 4 | 1 5 | 2 6 | 3 7 | 8 12 | 9 13 | 10 14 | "
                     "11 15\n"));
  EXPECT_EQ(
      told({"--places", "--tp", "2"}).out,
      "2 ranks, 1 stage of tp 2, cp 1, dp 1\n\nstage 0\n rank     tp   cp   dp\n    0      0    0    0\n"
      "    1      1    0    0\n\ntp       matrices and heads are cut     0 1\n");
}

TEST(ScheduleVerb, refuses_places_that_there_are_not) {
  EXPECT_THAT(told({"--tp", "2"}).err,
              HasSubstr("schedule: --tp, --cp, --dp, --ep and --etp say who sits where: add --places"));
  EXPECT_THAT(told({"--places", "--tp", "64", "--dp", "128"}).err,
              HasSubstr("schedule: more than 4096 ranks are more than anybody can look at"));
  EXPECT_THAT(told({"--places", "--tp", "2", "--ep", "4"}).err,
              HasSubstr("cannot be cut into ep 4 times etp 2"));
}
