// Two works by turns: who goes on when, and what becomes of the other where one fails.
#include "weft/pipe/turns.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/plain_device.h"
#include "tests/support/refused.h"
#include "weft/base/clock.h"
#include "weft/base/error.h"

using namespace weft;
using namespace weft::pipe;

namespace {

using Said = std::vector<std::string>;

/// Says its name and a number, and lets the other go on behind each but the last.
auto counting(Turns& turns, Said& said, const char* name, int to) {
  return [&turns, &said, name, to] {
    for (int i = 1; i <= to; ++i) {
      said.push_back(name + std::to_string(i));
      if (i < to) turns.go_on();
    }
  };
}

}  // namespace

TEST(Turns, hand_over_where_a_work_waits) {
  Turns turns;
  Said said;
  turns.run(counting(turns, said, "a", 3), counting(turns, said, "b", 3));
  EXPECT_EQ(said, (Said{"a1", "b1", "a2", "b2", "a3", "b3"}));
}

TEST(Turns, let_the_longer_work_end_alone) {
  Turns turns;
  Said said;
  turns.run(counting(turns, said, "a", 1), counting(turns, said, "b", 3));
  turns.run(counting(turns, said, "c", 4), counting(turns, said, "d", 2));
  EXPECT_EQ(said, (Said{"a1", "b1", "b2", "b3", "c1", "d1", "c2", "d2", "c3", "c4"}));
}

TEST(Turns, wait_for_the_others_end_where_they_must) {
  Turns turns;
  Said said;
  const auto patient = [&] {
    turns.end();
    said.push_back("a");
  };
  turns.run(patient, counting(turns, said, "b", 3));
  EXPECT_EQ(said, (Said{"b1", "b2", "b3", "a"}));
}

TEST(Turns, tell_what_failed_and_end_the_other_where_it_waits) {
  Turns turns;
  for (const bool first : {true, false}) {
    Said said;
    const auto fails = [&] {
      turns.go_on();
      fail(Kind::usage, "that is no microbatch");
    };
    const auto other = counting(turns, said, "b", 5);
    EXPECT_EQ(refused([&] { first ? turns.run(fails, other) : turns.run(other, fails); }),
              "that is no microbatch");
    EXPECT_EQ(said, first ? (Said{"b1"}) : (Said{"b1", "b2"}));
  }
  Said said;
  turns.run(counting(turns, said, "a", 1), counting(turns, said, "b", 1));
  EXPECT_EQ(said, (Said{"a1", "b1"}));
}

TEST(Turns, know_how_long_each_was_at_work) {
  Turns turns;
  const auto busy = [](double seconds) {
    return [seconds] {
      const Stopwatch watch;
      while (watch.seconds() < seconds) continue;
    };
  };
  weft::testing::PlainDevice device;
  std::array<Spent, 2> spent;
  const Turns::Clock clock{
      device, [&](Turns::Side side, Stretch stretch) { spent[std::size_t(side)].add(std::move(stretch)); }};
  turns.run(busy(0.001), busy(0.02), &clock);
  EXPECT_GE(spent[0].seconds(), 0.001);
  EXPECT_LT(spent[0].seconds(), 0.02);
  EXPECT_GE(spent[1].seconds(), 0.02);
}

// As of a GPU that broke meanwhile.
TEST(Turns, end_where_the_device_does_not_know_the_time) {
  Turns turns;
  weft::testing::PlainDevice device;
  const Turns::Clock broken{device, [](Turns::Side, Stretch) { fail(Kind::device, "a launch failed"); }};
  for (const int first : {1, 3}) {
    Said said;
    EXPECT_EQ(refused([&] {
                turns.run(counting(turns, said, "a", first), counting(turns, said, "b", 4 - first), &broken);
              }),
              "a launch failed");
  }
  Said said;
  turns.run(counting(turns, said, "a", 1), counting(turns, said, "b", 1));
  EXPECT_EQ(said, (Said{"a1", "b1"}));
}

TEST(Pass, pays_while_messages_travel_where_it_is_told_to) {
  for (const bool meanwhile : {true, false}) {
    int paid = 0;
    Pass pass;
    pass.weight_grads().pay_at_once(false);
    pass.pay_meanwhile(meanwhile);
    pass.weight_grads().owe([&paid] { ++paid; });
    pass.meanwhile();
    EXPECT_EQ(paid, meanwhile ? 1 : 0);
    pass.weight_grads().pay();
    EXPECT_EQ(paid, 1);
  }
}
