// What the coordinator tells of failures and hangs, and to whom.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/launch/meeting.h"
#include "weft/base/error.h"
#include "weft/launch/report.h"

using namespace weft::launch;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using weft::launch::testing::Meeting;

TEST(Coordinator, tells_other_nodes_the_beginning_of_a_long_report) {
  Meeting m({.nodes = {1, 1}});
  m.join(1);
  for (int rank = 0; rank < 300; ++rank) m.coordinator.heard(1, Doing{.round = 1, .rank = rank}, m.now);
  m.coordinator.heard(1, Still{.round = 1, .is = 1, .limit = 15}, m.now);
  m.stopped(1);
  const std::string whole = m.coordinator.verdict()->report, told = m.last<Finish>().report;
  const std::string end = "  and more, which the node where the agents met tells\n";
  EXPECT_GT(whole.size(), 10'000U);
  EXPECT_LE(told.size(), (4U << 10) + end.size());
  ASSERT_TRUE(told.ends_with("\n" + end));
  EXPECT_TRUE(whole.starts_with(told.substr(0, told.size() - end.size())));
}

TEST(Coordinator, says_that_others_still_work_while_a_machine_does_not_answer) {
  Failure silence{.rank = 3, .end = {.code = 1, .signal = 0}, .age = 12};
  silence.what = "does not answer for 12 s: its machine is gone or cut off";
  EXPECT_EQ(
      not_missed_yet(silence),
      "launch: rank 3 does not answer for 12 s: its machine is gone or cut off; the others still work\n");
}

TEST(Coordinator, tells_who_hangs_and_starts_again_once_all_nodes_are_still) {
  Meeting m({.nodes = {2, 2}, .patience = {}, .max_restarts = 1});
  m.join(1);
  m.join(2);
  m.pass(6);
  Doing waits{.round = 1, .rank = 0, .word = int(weft::Spoken::barrier), .step = 9, .circle = 1};
  waits.circles = {{.id = 1, .words = 1, .place = 0}};
  Doing hangs{.round = 1, .rank = 3, .step = 9, .still = 20};
  hangs.circles = {{.id = 1, .words = 0, .place = 3}};
  m.coordinator.heard(1, waits, m.now);
  m.coordinator.heard(1, Still{.round = 1, .is = 1, .limit = 15}, m.now);
  EXPECT_TRUE(m.who<Stop>().empty());
  m.coordinator.heard(2, hangs, m.now);
  m.coordinator.heard(2, Still{.round = 1, .is = 1, .limit = 15}, m.now);
  EXPECT_THAT(m.who<Stop>(), ElementsAre(1, 2));
  EXPECT_THAT(
      m.said,
      ElementsAre(
          "launch: rank 3 on node 1 (host h2) hangs in step 9 (starting): no sign of life for 20.0 s, "
          "where 15.0 s are much",
          "launch:   rank 0 waits in barrier 0 for rank 3, in step 9 (starting)"));
  m.stopped(1);
  m.stopped(2);
  EXPECT_EQ(m.last<Begin>().restarts, 1);
}

TEST(Coordinator, a_hang_without_restarts_left_is_in_the_report) {
  Meeting m({.nodes = {1, 1}});
  m.join(1);
  m.coordinator.heard(1, Doing{.round = 1, .rank = 0, .still = 20}, m.now);
  m.coordinator.heard(1, Still{.round = 1, .is = 1, .limit = 15}, m.now);
  m.stopped(1);
  EXPECT_EQ(m.code(), 1);
  EXPECT_THAT(m.coordinator.verdict()->report,
              HasSubstr("first: rank 0 on node 0 (host h1) hangs while starting"));
}

// mpirun's and srun's ranks are not where their launcher is.
TEST(Coordinator, believes_an_agent_whose_ranks_are_elsewhere) {
  Meeting m({.nodes = {1, 1}, .max_restarts = 3});
  m.join(1);
  const auto fails = [&](Failure failure) {
    m.pass(6);
    m.coordinator.heard(1, Failed{m.round(), std::move(failure)}, m.now);
    m.stopped(1);
  };
  m.coordinator.heard(1, Doing{.round = 1, .still = 20, .placed = 1, .node = 3, .host = "b"}, m.now);
  m.coordinator.heard(1, Still{.round = 1, .is = 1, .limit = 15}, m.now);
  EXPECT_THAT(m.said.back(), HasSubstr("launch: rank 0 on node 3 (host b) hangs"));
  m.stopped(1);
  fails({.rank = 5, .placed = 1, .host = "b", .end = {7, 0}});
  EXPECT_THAT(m.said.back(), HasSubstr("launch: rank 5 on host b: exit code 7; restart"));
  fails({.rank = 5, .node = 2, .placed = 1, .end = {7, 0}});
  EXPECT_THAT(m.said.back(), HasSubstr("launch: rank 5 on node 2: exit code 7; restart"));
  fails({.rank = 0, .launcher = "srun", .process = 42, .end = {7, 0}});
  EXPECT_THAT(m.coordinator.verdict()->report,
              AllOf(HasSubstr("first: srun on node 0 (host h1): exit code 7, "),
                    HasSubstr(" after the start; process 42\n")));
}
