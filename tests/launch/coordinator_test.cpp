#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <limits>

#include "tests/launch/meeting.h"
#include "weft/base/error.h"

using namespace weft::launch;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using weft::text;
using weft::launch::testing::Meeting;

namespace {

Rules two_nodes(int restarts = 0) { return {.nodes = {2, 2}, .patience = {}, .max_restarts = restarts}; }
Rules elastic() { return {.nodes = {1, 3}, .patience = {}, .max_restarts = 0}; }

}  // namespace

TEST(Coordinator, begins_when_all_nodes_are_there_and_numbers_them_as_they_wish) {
  Meeting m(two_nodes());
  m.join(7, 1, 3);
  EXPECT_TRUE(m.told.empty());
  m.join(8, 0, 2);
  EXPECT_THAT(m.who<Begin>(), ElementsAre(8, 7));
  const Begin begin = m.last<Begin>();
  EXPECT_EQ(begin.node, 1);
  EXPECT_EQ(begin.first_rank, 2);
  EXPECT_EQ(begin.slots, 3);
  EXPECT_EQ(begin.world, 5);
  EXPECT_EQ(begin.master, "10.0.0.8");
  EXPECT_TRUE(begin.peers.empty());
  EXPECT_EQ(std::get<Begin>(m.told[0].second).peers.size(), 2u);
}

TEST(Coordinator, ends_well_when_all_nodes_have) {
  Meeting m(two_nodes());
  m.join(1);
  m.join(2);
  m.coordinator.heard(1, Done{m.round()}, m.now);
  EXPECT_EQ(m.code(), -1);
  m.coordinator.heard(2, Done{m.round()}, m.now);
  EXPECT_EQ(m.code(), 0);
  EXPECT_THAT(m.who<Finish>(), ElementsAre(1, 2));
}

TEST(Coordinator, stops_all_at_the_first_failure_and_tells_the_first_by_time) {
  Meeting m(two_nodes());
  m.join(1);
  m.join(2);
  m.pass(2);
  m.fail(2, 0.1, {.code = 4, .signal = 0});
  EXPECT_THAT(m.who<Stop>(), ElementsAre(1, 2));
  m.fail(1, 0.4);  // told later, but it happened before
  m.stopped(2);
  EXPECT_EQ(m.code(), -1);
  m.stopped(1);
  EXPECT_EQ(m.code(), 128 + SIGKILL);
  EXPECT_EQ(m.coordinator.verdict()->report,
            "launch: the job failed; --max-restarts is 0\n"
            "  first: rank 10 on node 0 (host h1): signal 9 (Killed), 1.6 s after the start\n"
            "  then: rank 20 on node 1 (host h2): exit code 4\n");
  EXPECT_EQ(m.last<Finish>().report, m.coordinator.verdict()->report) << "every node says why";
  m.join(3);
  EXPECT_EQ(m.last<Finish>().report, m.coordinator.verdict()->report) << "one that comes too late as well";
}

TEST(Coordinator, starts_again_as_often_as_it_may) {
  Meeting m(two_nodes(1));
  m.join(1);
  m.join(2);
  m.pass(6);
  m.fail(1);
  m.stopped(1);
  m.stopped(2);
  EXPECT_EQ(m.last<Begin>().restarts, 1);
  EXPECT_THAT(m.said, ElementsAre("launch: rank 10 on node 0 (host h1): signal 9 (Killed); restart 1 of 1"));
  m.fail(1);
  m.stopped(1);
  m.stopped(2);
  EXPECT_EQ(m.code(), 137);
  EXPECT_THAT(m.coordinator.verdict()->report, HasSubstr("all 1 restarts are used"));
}

TEST(Coordinator, does_not_start_again_what_would_fail_again) {
  Rules rules = two_nodes(9);
  rules.final_codes = {2};
  Meeting m(rules);
  m.join(1);
  m.join(2);
  m.fail(1, 0, {.code = 2, .signal = 0});
  m.stopped(1, -1, 2);
  m.stopped(2);
  EXPECT_EQ(m.code(), 2);
  EXPECT_THAT(m.coordinator.verdict()->report, HasSubstr("exit code 2 is not tried again"));
}

TEST(Coordinator, waits_longer_each_time_before_it_starts_again_what_fails_at_once) {
  Meeting m({.nodes = {1, 1}, .patience = {}, .max_restarts = 100});
  m.join(1);
  for (const double pause : {0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0}) {
    m.said.clear();
    m.fail(1);
    m.stopped(1);
    EXPECT_THAT(m.said, ElementsAre(HasSubstr(text(" of 100 in ", pause, " s"))));
    const int round = m.round();
    EXPECT_NEAR(m.coordinator.next(), m.now + std::min(3.0, pause), 1e-6);
    for (const double part : {0.25, 0.25, 0.25}) {
      m.pass(part * pause);
      m.coordinator.heard(1, Beat{}, m.now);
      EXPECT_EQ(m.round(), round);
    }
    m.pass(0.26 * pause);
    EXPECT_EQ(m.round(), round + 1);
  }
}

TEST(Coordinator, starts_what_lived_or_got_on_again_at_once) {
  Meeting m({.nodes = {1, 1}, .patience = {}, .max_restarts = 100});
  m.join(1);
  m.pass(5);
  m.fail(1);
  m.stopped(1, 0);
  EXPECT_EQ(m.round(), 2);
  m.pass(1);
  m.fail(1);
  m.stopped(1, 20);  // steps that were saved
  EXPECT_EQ(m.round(), 3);
  m.pass(1);
  m.fail(1);
  m.stopped(1, 20);
  EXPECT_EQ(m.round(), 3);
}

TEST(Coordinator, gives_up_after_three_restarts_without_progress) {
  Meeting m({.nodes = {1, 1}, .patience = {}, .max_restarts = 100});
  m.join(1);
  for (const int progress : {5, 5, 5, 10, 10, 10}) {
    m.pass(2.1);  // longer than the pauses between them
    m.fail(1);
    m.stopped(1, progress);
    EXPECT_EQ(m.code(), -1);
  }
  m.pass(2.1);
  m.fail(1);
  m.stopped(1, 10);
  EXPECT_EQ(m.code(), 137);
  EXPECT_THAT(m.coordinator.verdict()->report, HasSubstr("3 restarts in a row made no progress"));
}

TEST(Coordinator, ends_the_job_when_one_of_a_fixed_number_of_nodes_is_lost) {
  Meeting m(two_nodes());
  m.join(1);
  m.join(2);
  m.coordinator.gone(2, "its connection was lost", m.now);
  EXPECT_THAT(m.who<Stop>(), ElementsAre(1));
  m.stopped(1);
  EXPECT_EQ(m.code(), 1);
  EXPECT_THAT(m.coordinator.verdict()->report, HasSubstr("first: node 1 (host h2): its connection was lost"));
}

TEST(Coordinator, goes_on_with_fewer_nodes_where_it_may) {
  Meeting m(elastic());
  for (const int id : {1, 2, 3}) m.join(id);
  EXPECT_EQ(m.last<Begin>().world, 6);
  m.coordinator.gone(2, "its connection was lost", m.now);
  m.stopped(1);
  m.stopped(3);
  m.pass(4.1);
  EXPECT_EQ(m.last<Begin>().world, 4);
  EXPECT_EQ(m.last<Begin>().restarts, 0);
  EXPECT_EQ(m.code(), -1);
}

TEST(Coordinator, takes_a_spare_for_a_node_that_is_lost) {
  Meeting m(two_nodes(1));
  for (const int id : {1, 2, 3}) m.join(id);
  EXPECT_THAT(m.who<Begin>(), ElementsAre(1, 2));
  m.coordinator.gone(1, "its connection was lost", m.now);
  m.stopped(2);
  m.pass(4.1);
  EXPECT_THAT(m.who<Begin>(), ElementsAre(1, 2, 2, 3));
}

TEST(Coordinator, takes_in_a_node_that_comes_while_there_is_room) {
  Meeting m(elastic());
  m.join(1);
  EXPECT_TRUE(m.told.empty());
  m.pass(31);  // the last call
  EXPECT_EQ(m.last<Begin>().world, 2);
  m.join(2);
  EXPECT_THAT(m.who<Stop>(), ElementsAre(1));
  m.stopped(1, 7, 3);
  EXPECT_EQ(m.last<Begin>().world, 4);
  EXPECT_EQ(m.last<Begin>().restarts, 0);
}

TEST(Coordinator, notices_a_silent_node_in_twelve_seconds) {
  Meeting m(two_nodes());
  m.join(1);
  m.join(2);
  for (int i = 0; i < 4; ++i) {
    m.pass(3);
    m.coordinator.heard(1, Beat{}, m.now);
  }
  EXPECT_THAT(m.who<Stop>(), ElementsAre(1));
  EXPECT_THAT(m.said, ElementsAre("launch: node 1 (host h2): silent for 12 s"));
}

// It may see later than the coordinator that it is cut off, and works until then.
TEST(Coordinator, begins_without_a_silent_node_when_that_has_stopped_for_sure) {
  Meeting m(elastic());
  for (const int id : {1, 2, 3}) m.join(id);
  const auto beats = [&](int times) {
    for (int i = 0; i < times; ++i) {
      m.pass(3);
      for (const int id : {1, 3}) m.coordinator.heard(id, Beat{}, m.now);
    }
  };
  beats(4);
  EXPECT_THAT(m.who<Stop>(), ElementsAre(1, 3));
  m.stopped(1);
  m.stopped(3);
  beats(2);
  EXPECT_NEAR(m.coordinator.next(), m.now + 1, 1e-6) << "15 s until it knows, 3 of grace and 1 to be gone";
  EXPECT_EQ(m.last<Begin>().world, 6);
  m.pass(1);
  EXPECT_EQ(m.last<Begin>().world, 4);
}

TEST(Coordinator, begins_without_a_lost_node_when_its_workers_have_ended_for_sure) {
  Meeting m(elastic());
  for (const int id : {1, 2, 3}) m.join(id);
  m.coordinator.gone(2, "its connection was lost", m.now);
  m.stopped(1);
  m.stopped(3);
  m.pass(3.9);
  EXPECT_EQ(m.last<Begin>().world, 6) << "it may live, and stop its workers now";
  m.pass(0.2);
  EXPECT_EQ(m.last<Begin>().world, 4);
}

TEST(Coordinator, blames_nobody_for_its_own_sleep) {
  Meeting m(two_nodes());
  m.join(1);
  m.join(2);
  m.pass(3600);
  EXPECT_TRUE(m.who<Stop>().empty());
  m.pass(3);
  EXPECT_TRUE(m.who<Stop>().empty());
}

TEST(Coordinator, passes_a_signal_on_and_ends_with_the_workers_code) {
  Meeting m(two_nodes(5));
  m.join(1);
  m.join(2);
  m.coordinator.heard(1, Leaving{SIGINT}, m.now);
  m.coordinator.heard(2, Leaving{SIGINT}, m.now);
  EXPECT_THAT(m.who<Stop>(), ElementsAre(1, 2));
  EXPECT_EQ(m.last<Stop>().signal, SIGINT);
  EXPECT_EQ(m.last<Stop>().grace, 25);
  m.stopped(1, 4, 3);
  m.stopped(2, 4, 3);
  EXPECT_EQ(m.code(), 3);
  EXPECT_EQ(m.coordinator.verdict()->report, "");
}

TEST(Coordinator, loses_a_node_that_does_not_stop_its_workers) {
  Meeting m(two_nodes());
  m.join(1);
  m.join(2);
  m.fail(1);
  m.stopped(1);
  m.coordinator.heard(2, Beat{}, m.now + 7);
  m.now += 9;
  m.coordinator.tick(m.now);
  EXPECT_EQ(m.code(), 137);
  EXPECT_THAT(m.coordinator.verdict()->report, HasSubstr("then: node 1 (host h2): did not stop its workers"));
}

TEST(Coordinator, turns_away_who_belongs_to_another_job) {
  Meeting m(two_nodes());
  m.coordinator.joined(1, {.run_id = "other"}, m.now);
  EXPECT_EQ(m.last<Refused>().why, "launch: this rendezvous is for --rdzv-id none, not other");
  m.join(2, 5);
  EXPECT_EQ(m.last<Refused>().why, "launch: --node-rank 5 is not below the 2 of --nnodes where agents meet");
  EXPECT_EQ(m.coordinator.members(), 0);
}

TEST(Coordinator, takes_an_agent_that_comes_back_for_the_one_it_was) {
  Meeting m(two_nodes());
  m.join(1, 0);
  m.join(2, 0);
  EXPECT_EQ(m.coordinator.members(), 1);
  EXPECT_THAT(m.who<Refused>(), ElementsAre(1)) << "it may live, on another machine";
  EXPECT_EQ(m.last<Refused>().why,
            "launch: another agent came with --node-rank 0, and the job goes on with that one");
  m.join(3, 1);
  EXPECT_THAT(m.who<Begin>(), ElementsAre(2, 3));
}

TEST(Coordinator, says_when_too_few_nodes_come) {
  Meeting m(two_nodes());
  m.join(1);
  for (int i = 0; i < 300; ++i) {
    m.coordinator.heard(1, Beat{}, m.now);
    m.pass(3);
  }
  EXPECT_EQ(m.code(), 1);
  EXPECT_EQ(m.coordinator.verdict()->report,
            "launch: after 600 s 1 of at least 2 nodes are here; see --rdzv-conf join_timeout\n");
}

TEST(Coordinator, a_node_that_moves_again_does_not_hang) {
  Meeting m(two_nodes());
  m.join(1);
  m.join(2);
  m.coordinator.heard(1, Still{.round = 1, .is = 1, .limit = 15}, m.now);
  m.coordinator.heard(1, Still{.round = 1, .is = 0, .limit = 15}, m.now);
  m.coordinator.heard(2, Still{.round = 1, .is = 1, .limit = 15}, m.now);
  EXPECT_TRUE(m.who<Stop>().empty());
}

TEST(Coordinator, tells_ports_of_the_first_node_to_all) {
  Meeting m(two_nodes());
  m.coordinator.joined(1, {.run_id = "none", .wanted_rank = 1, .port = 111}, m.now);
  m.coordinator.joined(2, {.run_id = "none", .wanted_rank = 0, .port = 222}, m.now);
  EXPECT_EQ(std::get<Begin>(m.told[0].second).port, 222);
  EXPECT_EQ(std::get<Begin>(m.told[1].second).port, 222);
}

TEST(Coordinator, hostile_paces_are_passed_over) {
  Meeting m(two_nodes());
  m.join(1);
  m.join(2);
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t steps : {most, -most, std::int64_t{5}})
    m.coordinator.heard(1, Pace{.round = 1, .steps = steps, .worked = std::nan("")}, m.now);
  EXPECT_TRUE(m.said.empty());
}
