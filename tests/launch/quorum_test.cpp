// A coordinator of several that could be, which acts only while most places are with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/launch/meeting.h"

using namespace weft::launch;
using ::testing::ElementsAre;
using weft::launch::testing::Meeting;

namespace {

/// Three places and two nodes, of which each agent is told where it sits.
struct Voting : Meeting {
  Voting() : Meeting({.nodes = {1, 2}, .patience = {.last_call = 0}, .max_restarts = 3, .voters = 3}) {}
  void vote(int id, int voter, int round = 0, int restarts = 0) {
    coordinator.joined(id,
                       {.run_id = "none",
                        .host = "h" + std::to_string(id),
                        .address = "a",
                        .wanted_rank = -1,
                        .slots = 2,
                        .voter = voter,
                        .round = round,
                        .restarts = restarts},
                       now);
  }
  /// Members say that they live, every three seconds.
  void beats(std::initializer_list<int> ids, int times) {
    for (int i = 0; i < times; ++i) {
      for (const int id : ids) coordinator.heard(id, Beat{}, now);
      pass(3);
    }
  }
};

}  // namespace

TEST(Quorum, nothing_begins_without_most_of_the_places) {
  Voting v;
  v.vote(1, 0);
  v.vote(2, -1);
  v.vote(3, 0);
  v.pass(0.1);
  EXPECT_TRUE(v.who<Begin>().empty()) << "a place counts once";
  v.vote(4, 2);
  EXPECT_EQ(v.who<Begin>().size(), 2U);
}

TEST(Quorum, a_voter_that_was_not_heard_just_now_does_not_count) {
  Voting v;
  v.vote(1, 0);
  v.pass(8);
  v.vote(2, 1);
  EXPECT_TRUE(v.who<Begin>().empty());
  v.coordinator.heard(1, Beat{}, v.now);
  v.pass(0.1);
  EXPECT_EQ(v.who<Begin>().size(), 2U);
}

TEST(Quorum, all_stop_where_most_of_the_places_are_lost_and_begin_again_with_them) {
  Voting v;
  v.vote(1, 0);
  v.vote(2, 1);
  v.beats({1, 2}, 4);
  EXPECT_TRUE(v.who<Stop>().empty());
  const auto alone = [&](int seconds) {
    for (int i = 0; i < seconds; ++i) {
      v.coordinator.heard(1, Beat{}, v.now);
      v.pass(1);
    }
  };
  alone(7);
  EXPECT_EQ(v.who<Stop>().size(), 2U);
  EXPECT_THAT(
      v.said,
      ElementsAre("launch: most of the places of --rdzv-endpoint are out of reach, and may go on without "
                  "this one; all stop here"));
  v.stopped(1);
  alone(12);
  EXPECT_EQ(v.who<Begin>().size(), 2U) << "a node alone does not go on, though --nnodes would let it";
  v.vote(5, 2);
  EXPECT_EQ(v.who<Begin>().size(), 4U);
}

TEST(Quorum, who_takes_over_goes_on_counting_where_the_job_stood) {
  Voting v;
  v.vote(1, 1, 7, 2);
  v.vote(2, 2, 6, 1);
  EXPECT_EQ(v.last<Begin>().round, 8);
  EXPECT_EQ(v.last<Begin>().restarts, 2);
}

TEST(Quorum, hostile_counts_are_bounded) {
  Voting v;
  v.vote(1, 1, std::numeric_limits<int>::max(), std::numeric_limits<int>::max());
  v.vote(2, 7, -5, -5);
  v.vote(3, 2);
  EXPECT_EQ(v.last<Begin>().round, (1 << 24) + 1);
  EXPECT_EQ(v.last<Begin>().restarts, 3);
}

TEST(Quorum, says_what_is_missing_in_the_end) {
  Voting v;
  v.vote(1, 1);
  v.beats({1}, 201);
  EXPECT_EQ(v.code(), 1);
  EXPECT_EQ(v.coordinator.verdict()->report,
            "launch: after 600 s 1 of at least 1 nodes are here, and not most of the places of "
            "--rdzv-endpoint; see "
            "--rdzv-conf join_timeout\n");
}
