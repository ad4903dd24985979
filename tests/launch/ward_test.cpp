// Ranks that tell over real sockets on loopback what they do, and strangers.
#include "weft/launch/ward.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <optional>
#include <random>

#include "tests/support/says.h"
#include "tests/support/slow_names.h"
#include "weft/base/clock.h"
#include "weft/base/error.h"
#include "weft/launch/herald.h"
#include "weft/launch/socket.h"

using namespace weft;
using namespace weft::launch;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

struct Warded {
  Warded() : listener(listen_anywhere()), ward(std::in_place, loop, listener.get(), "secret") {}
  Watcher watcher(const std::string& token = "secret", int round = 1) const {
    return {
        .period = 0.01, .hosts = {"127.0.0.1"}, .port = port_of(listener), .token = token, .round = round};
  }
  std::vector<PulseReading> read(int round = 1) const { return ward->read(round, seconds_now()); }
  bool until(const std::function<bool()>& holds) {
    const Deadline late(60);
    std::function<void()> look = [&] {
      holds() || late.passed() ? loop.stop() : void(loop.after(0.002, look));
    };
    Loop* const all = &loop;
    all->after(0, look);
    all->run();
    return holds();
  }
  Loop loop;
  Descriptor listener;
  std::optional<Ward> ward;
};

/// A rank with a board and a herald of its own.
struct Rank {
  Rank(const Watcher& watcher, int rank, Herald::Loss loss = {})
      : board(PulseBoard::alone()), pulse(board.pulse(0)) {
    pulse.begin(rank, 0);
    const Whereabouts self{.rank = rank, .node = 1, .local_rank = 2, .host = "beta", .process = 42};
    herald.emplace(watcher, self, board, std::move(loss));
  }
  PulseBoard board;
  Pulse pulse;
  std::optional<Herald> herald;
};

Descriptor stranger(const Warded& place, const std::string& bytes) {
  std::string why;
  Descriptor out = connect_to({"127.0.0.1", port_of(place.listener)}, why);
  for (int tries = 0; tries < 1000 && send(out.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0; ++tries)
    ::usleep(1000);
  return out;
}

Vital vital_of(PulseReading reading) { return {.round = 1, .age = 0, .reading = std::move(reading)}; }

}  // namespace

TEST(Ward, knows_what_ranks_elsewhere_do) {
  Warded place;
  Rank one(place.watcher(), 3), other(place.watcher(), 5);
  const int circle = other.pulse.sits_in(77, 1, 2);
  other.pulse.begin_step(12);
  other.pulse.spoke(circle);
  other.pulse.waits({.word = Spoken::all_reduce, .circle = circle, .number = 4});
  ASSERT_TRUE(
      place.until([&] { return place.read().size() == 2 && place.read()[1].word == Spoken::all_reduce; }));
  const PulseReading seen = place.read()[1];
  EXPECT_EQ(seen.rank, 5);
  EXPECT_EQ(seen.step, 12);
  EXPECT_EQ(seen.number, 4);
  EXPECT_EQ(seen.circles.at(0).id, 77U);
  EXPECT_EQ(seen.circles[0].words, 1U);
}

TEST(Ward, sees_how_long_a_rank_has_not_moved_by_its_own_clock) {
  Warded place;
  Rank one(place.watcher(), 0);
  const double before = seconds_now();
  one.pulse.begin_step(1);
  ASSERT_TRUE(
      place.until([&] { return !place.read().empty() && seconds_now() - place.read()[0].beat > 0.3; }));
  EXPECT_GT(place.read()[0].beat, before - 0.01);
}

TEST(Ward, takes_a_rank_that_is_cut_off_for_alive_and_forgets_one_that_said_goodbye) {
  Warded place;
  std::optional<Rank> one(std::in_place, place.watcher(), 0);
  const std::string hello = encode(Join{.run_id = "secret", .host = "", .address = ""});
  Descriptor other = stranger(place, hello + encode(vital_of({.beat = 1, .rank = 1})));
  ASSERT_TRUE(place.until([&] { return place.read().size() == 2; }));
  other.reset();
  ASSERT_TRUE(place.until([&] { return place.ward->connections() == 1; }));
  const double later = seconds_now() + 100;
  EXPECT_EQ(place.ward->read(1, later)[1].beat, later);
  one.reset();
  ASSERT_TRUE(place.until([&] { return place.ward->connections() == 0; }));
  ASSERT_EQ(place.read().size(), 1U);
  EXPECT_EQ(place.read()[0].rank, 1);
}

TEST(Ward, is_missed_by_ranks_that_reached_it_and_not_by_those_that_never_did) {
  Warded place;
  Descriptor nobody = listen_anywhere();
  Watcher elsewhere = place.watcher();
  elsewhere.port = port_of(nobody);
  nobody.reset();
  std::atomic<int> known = 0, unknown = 0;
  Rank one(place.watcher(), 0, {.after = 0.3, .act = [&] { ++known; }});
  Rank other(elsewhere, 1, {.after = 0.3, .act = [&] { ++unknown; }});
  ASSERT_TRUE(place.until([&] { return place.read().size() == 1; }));
  const double began = seconds_now();
  ASSERT_TRUE(place.until([&] { return seconds_now() - began > 0.6; }));
  EXPECT_EQ(known, 0);  // it is heard all the time
  place.ward.reset();
  place.listener.reset();
  ASSERT_TRUE(place.until([&] { return known == 1; }));
  EXPECT_EQ(unknown, 0);
}

TEST(Ward, is_reached_over_ipv6) {
  if (!listen_at({.host = "::1", .port = 0}, Bind::if_ours)) GTEST_SKIP() << "this machine has no IPv6";
  Warded place;
  Watcher watcher = place.watcher();
  watcher.hosts = {"::1"};
  Rank one(read_watcher(to_word(watcher)), 3);
  EXPECT_TRUE(place.until([&] { return place.read().size() == 1; }));
}

// No name server answers; the rank ends when it wants to.
TEST(Ward, that_nobody_knows_holds_no_rank_up) {
  const support::SlowNames names;
  const PulseBoard board = PulseBoard::alone();
  const Stopwatch watch;
  {
    const Herald herald({.period = 0.01, .hosts = {"first"}, .port = 1, .token = "secret", .round = 1}, {},
                        board, {}, names.service());
  }
  EXPECT_LT(watch.seconds(), 2.5);  // it would wait 3 s to connect
}

TEST(Ward, does_not_take_one_round_for_another) {
  Warded place;
  Rank one(place.watcher("secret", 2), 0);
  ASSERT_TRUE(place.until([&] { return place.read(2).size() == 1; }));
  EXPECT_TRUE(place.read(1).empty());
}

TEST(Ward, knows_where_a_rank_was_though_it_went) {
  Warded place;
  std::optional<Rank> one(std::in_place, place.watcher("secret", 2), 5);
  ASSERT_TRUE(place.until([&] { return place.read(2).size() == 1; }));
  one.reset();
  ASSERT_TRUE(place.until([&] { return place.ward->connections() == 0; }));
  const Whereabouts* seen = place.ward->where(2, 5);
  ASSERT_NE(seen, nullptr);
  EXPECT_EQ(text(seen->node, ".", seen->local_rank, "@", seen->host, " ", seen->process), "1.2@beta 42");
  EXPECT_EQ(place.ward->where(1, 5), nullptr);
  EXPECT_EQ(place.ward->where(2, 4), nullptr);
}

TEST(Ward, is_not_changed_by_strangers) {
  Warded place;
  Rank one(place.watcher(), 0), guesser(place.watcher("guessed"), 1);
  std::mt19937 draw(3);
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 50; ++i) {
    std::string bytes(1 + draw() % 3000, '\0');
    for (char& c : bytes) c = char(draw());
    strangers.push_back(stranger(place, bytes));
  }
  strangers.push_back(stranger(place, encode(vital_of({.rank = 9}))));
  ASSERT_TRUE(place.until([&] { return place.read().size() == 1 && place.ward->connections() < 20; }));
  EXPECT_EQ(place.read()[0].rank, 0);
}

TEST(Ward, passes_over_what_makes_no_sense) {
  Warded place;
  std::string bytes = encode(Join{.run_id = "secret", .host = "", .address = ""});
  bytes += encode(vital_of({.rank = -1}));
  bytes += encode(vital_of({.rank = 1 << 20}));
  bytes += encode(vital_of({.rank = 1, .circle = 1}));
  bytes += encode(vital_of({.rank = 2, .word = static_cast<Spoken>(99)}));
  bytes += encode(vital_of({.rank = 3, .section = static_cast<Section>(99)}));
  bytes += encode(vital_of({.rank = 4, .worked = HUGE_VAL}));
  bytes += encode(Vital{.round = 1, .age = -1, .reading = {.rank = 5}});
  bytes += encode(Whereabouts{.round = 1, .rank = -7});
  bytes += encode(Whereabouts{.round = 1, .rank = 7, .host = std::string(256, 'h')});
  bytes += encode(vital_of({.rank = 6}));
  const Descriptor teller = stranger(place, bytes);
  ASSERT_TRUE(place.until([&] { return !place.read().empty(); }));
  EXPECT_EQ(place.read().size(), 1U);
  EXPECT_EQ(place.read()[0].rank, 6);
  EXPECT_EQ(place.ward->where(1, -7), nullptr);
  EXPECT_EQ(place.ward->where(1, 7), nullptr);
}

TEST(Herald, tells_again_after_a_connection_broke) {
  Warded place;
  Rank one(place.watcher(), 0);
  ASSERT_TRUE(place.until([&] { return place.read().size() == 1; }));
  place.ward.reset();
  place.ward.emplace(place.loop, place.listener.get(), "secret");
  ASSERT_TRUE(place.until([&] { return place.read().size() == 1; }));
}

TEST(Herald, costs_nothing_where_nobody_listens) {
  Watcher nowhere{.period = 0.01, .hosts = {"127.0.0.1", "no.such.host.invalid"}, .port = 1, .token = "x"};
  const Stopwatch watch;
  { Rank one(nowhere, 0); }
  EXPECT_LT(watch.seconds(), 30);
}

// Its kernel takes connections, and no program answers; each of the addresses would be waited for.
TEST(Herald, does_not_hold_the_end_of_a_rank_up) {
  const Descriptor silent = listen_anywhere();
  Watcher watcher{.period = 0.01, .hosts = {}, .port = port_of(silent), .token = "x"};
  watcher.hosts.assign(20, "127.0.0.1");
  Rank one(watcher, 0);
  pollfd knock{.fd = silent.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(poll(&knock, 1, 30'000), 1);
  const Stopwatch watch;
  one.herald.reset();
  EXPECT_LT(watch.seconds(), 30);
}

TEST(Watcher, is_a_word_of_the_environment) {
  const Watcher w{.period = 0.5, .hosts = {"10.0.0.7", "fe80::1"}, .port = 4711, .token = "ab", .round = 3};
  EXPECT_EQ(to_word(w), "0.5@10.0.0.7,fe80::1:4711/ab/3");
  EXPECT_EQ(read_watcher(to_word(w)), w);
  for (const char* wrong : {"", "1", "1@h:1/x", "0@h:1/x/1", "1@:1/x/1", "1@h:99999/x/1", "nan@h:1/x/1"})
    EXPECT_THAT(support::says([&] { static_cast<void>(read_watcher(wrong)); }),
                HasSubstr("is not PERIOD@HOST,…:PORT/TOKEN/ROUND, as weft launch sets it"))
        << wrong;
  EXPECT_EQ(support::says([] { static_cast<void>(read_watcher("1@h:1/x/y")); }),
            "usage: environment: WEFT_WATCHER: 'y' is not a whole number");
}

TEST(Token, is_another_each_time) {
  EXPECT_EQ(new_token().size(), 32U);
  EXPECT_NE(new_token(), new_token());
}
