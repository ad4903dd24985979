// Nodes that a signal tells to go, in a job that can do with fewer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "tests/launch/meeting.h"

using namespace weft::launch;
using ::testing::ElementsAre;
using weft::launch::testing::Meeting;

namespace {

Rules one_to_three() { return {.nodes = {1, 3}, .patience = {}}; }

}  // namespace

TEST(Leaving, lets_one_node_of_an_elastic_job_leave) {
  Meeting m(one_to_three());
  for (const int id : {1, 2, 3}) m.join(id);
  m.coordinator.heard(2, Leaving{SIGTERM}, m.now);
  for (const int id : {1, 2, 3}) m.stopped(id, 4, 3);
  EXPECT_EQ(m.last<Begin>().world, 4);
  EXPECT_EQ(m.code(), -1);
  EXPECT_THAT(m.who<Finish>(), ElementsAre(2)) << "it does not wait for the others";
  EXPECT_EQ(m.last<Finish>().code, 3);
}

TEST(Leaving, lets_one_leave_that_fell_silent_with_the_last_who_worked) {
  Meeting m(one_to_three());
  for (const int id : {1, 2, 3}) m.join(id);
  m.coordinator.heard(2, Leaving{SIGTERM}, m.now);
  for (const int id : {2, 3}) m.stopped(id, 4, 3);
  for (int i = 0; i < 4; ++i) {
    m.pass(3);
    m.coordinator.heard(3, Beat{}, m.now);
  }
  EXPECT_EQ(m.coordinator.members(), 1);
  EXPECT_THAT(m.who<Finish>(), ElementsAre(2));
}

TEST(Leaving, lets_who_has_no_part_leave_and_stops_nobody_for_it) {
  Meeting m({.nodes = {2, 2}});
  for (const int id : {1, 2, 3}) m.join(id);
  m.coordinator.heard(3, Leaving{SIGTERM}, m.now);
  EXPECT_TRUE(m.who<Stop>().empty());
  EXPECT_THAT(m.who<Finish>(), ElementsAre(3));
  EXPECT_EQ(m.last<Finish>().code, 128 + SIGTERM);
  EXPECT_EQ(m.code(), -1);
  m.coordinator.gone(3, "its connection was closed", m.now);
  EXPECT_EQ(m.coordinator.members(), 2);
}

TEST(Leaving, lets_one_leave_between_rounds_while_enough_are_left) {
  Meeting m({.nodes = {2, 4}, .patience = {}, .max_restarts = 9});
  for (const int id : {1, 2, 3}) m.join(id);
  m.coordinator.heard(2, Leaving{SIGTERM}, m.now);
  EXPECT_THAT(m.who<Finish>(), ElementsAre(2));
  EXPECT_EQ(m.code(), -1);
  m.coordinator.heard(1, Leaving{SIGINT}, m.now);
  EXPECT_EQ(m.code(), 128 + SIGINT) << "one alone is too few";
}

TEST(Leaving, is_waited_for_where_its_connection_broke_while_it_saves) {
  Meeting m(one_to_three());
  for (const int id : {1, 2, 3}) m.join(id);
  m.coordinator.heard(2, Leaving{SIGTERM}, m.now);
  m.coordinator.gone(2, "its connection was lost", m.now);
  m.stopped(1);
  m.stopped(3);
  EXPECT_NEAR(m.coordinator.next(), m.now + 3, 1e-6);
  for (int i = 0; i < 25; ++i) {
    for (const int id : {1, 3}) m.coordinator.heard(id, Beat{}, m.now);
    m.pass(1);
  }
  EXPECT_EQ(m.last<Begin>().world, 6);
  m.pass(1.1);
  EXPECT_EQ(m.last<Begin>().world, 4);
}
