#include "weft/launch/message.h"

#include <gtest/gtest.h>

#include "tests/support/says.h"

using namespace weft::launch;
using weft::support::says;

namespace {

constexpr std::size_t largest = 1 << 16;

std::string taken(std::string bytes) {
  return says([&] { take_frame(bytes, largest); });
}

}  // namespace

TEST(Message, arrives_as_it_was_sent) {
  Begin begin{
      .round = 3, .restarts = 1, .max_restarts = 4, .node = 1, .nodes = 2, .first_rank = 4, .world = 9};
  begin.master = "10.0.0.1";
  begin.peers = {{"10.0.0.1", 4}, {"10.0.0.2", 5}};
  std::string bytes = encode(begin) + encode(Failed{7, {.rank = 5, .host = "h", .end = {0, 9}, .age = 0.25}});
  const auto first = std::get<Begin>(*take_frame(bytes, largest));
  EXPECT_EQ(first.master, "10.0.0.1");
  EXPECT_EQ(first.peers[1].slots, 5);
  EXPECT_EQ(first.world, 9);
  const auto second = std::get<Failed>(*take_frame(bytes, largest));
  EXPECT_EQ(second.round, 7);
  EXPECT_EQ(second.failure.rank, 5);
  EXPECT_EQ(second.failure.local_rank, -1);
  EXPECT_EQ(second.failure.end, (End{0, 9}));
  EXPECT_EQ(second.failure.age, 0.25);
  EXPECT_TRUE(bytes.empty());
}

TEST(Message, tells_what_a_rank_does) {
  Doing doing{.round = 2, .rank = 5, .word = 3, .peer = 1, .step = 70, .number = 9, .circle = 1ull << 63};
  doing.circles = {{.id = 7, .words = 8, .place = 1}};
  std::string bytes = encode(doing) + encode(Pace{.round = 2, .rank = 5, .steps = 4, .worked = 0.5});
  const auto first = std::get<Doing>(*take_frame(bytes, largest));
  EXPECT_EQ(first.circle, 1ull << 63);
  EXPECT_EQ(first.circles[0].words, 8u);
  EXPECT_EQ(first.number, 9);
  EXPECT_EQ(std::get<Pace>(*take_frame(bytes, largest)).worked, 0.5);
}

TEST(Message, tells_what_a_rank_on_another_machine_does) {
  Vital vital{.round = 2, .age = 0.25, .reading = {.rank = 5, .section = weft::Section::saving, .step = 7}};
  vital.reading.word = weft::Spoken::recv;
  vital.reading.circles = {{.id = 7, .words = 8, .place = 1, .size = 2}};
  std::string bytes = encode(vital) + encode(Resigned{});
  const auto first = std::get<Vital>(*take_frame(bytes, largest));
  EXPECT_EQ(first.age, 0.25);
  EXPECT_EQ(first.reading.section, weft::Section::saving);
  EXPECT_EQ(first.reading.word, weft::Spoken::recv);
  EXPECT_EQ(first.reading.circles[0].size, 2);
  EXPECT_TRUE(std::holds_alternative<Resigned>(*take_frame(bytes, largest)));
}

TEST(Message, waits_for_its_last_byte) {
  const std::string whole = encode(Join{.run_id = "none", .host = "here"});
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    std::string part = whole.substr(0, bytes);
    EXPECT_FALSE(take_frame(part, largest)) << bytes;
    EXPECT_EQ(part.size(), bytes);
  }
}

TEST(Message, refuses_what_is_none) {
  EXPECT_EQ(taken("GET / HTTP/1.1\r\n"), "communication: launch: a frame of 542393671 bytes; at most 65536");
  EXPECT_EQ(taken(std::string(8, '\0')), "communication: launch: a frame of 0 bytes; at most 65536");
  EXPECT_EQ(taken(std::string("\1\0\0\0\x63", 5)), "communication: launch: message kind 99 does not exist");
  std::string join = encode(Join{});
  join[5] ^= 1;
  EXPECT_EQ(taken(join), "communication: launch: an agent of another version, or another program");
  std::string done = encode(Done{1});
  ++done[0];
  EXPECT_EQ(taken(done + "x"), "communication: launch: a message goes on after its last field");
  done[0] = 3;
  EXPECT_EQ(taken(done), "communication: launch: a message ends before its last field");
}
