// Agents that meet over real sockets on loopback, with good and bad company.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <random>

#include "tests/support/says.h"
#include "weft/base/clock.h"
#include "weft/launch/client.h"
#include "weft/launch/server.h"

using namespace weft;
using namespace weft::launch;
using testing::HasSubstr;

namespace {

constexpr double too_long = 60;  // no test waits for it

Rules rules_for(int least, int most) {
  return {.nodes = {least, most}, .patience = {.join = 10, .last_call = 0.05, .beat = 1, .missed_beats = 4}};
}

/// A server, agents that only listen, and the loop of all.
struct Venue {
  explicit Venue(const Rules& given, Server::Options options = {}, std::string at = "127.0.0.1")
      : rules(given), host(std::move(at)) {
    raise_descriptor_limit();
    server.emplace(loop, listen_at({.host = host, .port = 0}, Bind::here), rules, options);
    port = server->port();
  }
  int agent(int wanted = -1) {
    const auto id = int(agents.size());
    heard.emplace_back();
    cut_off.emplace_back();
    agents.push_back(std::make_unique<Client>(
        loop, Endpoint{host, port}, Join{.run_id = "none", .host = "h", .wanted_rank = wanted, .slots = 8},
        rules.patience,
        Client::Events{.heard = [this, id](const Message& m) { take(id, m); },
                       .cut_off = [this, id](const std::string& why) { cut_off[std::size_t(id)] = why; },
                       .given_up = [this](const std::string& why) { given_up = why; }}));
    return id;
  }
  void take(int id, const Message& message) {
    if (!std::holds_alternative<Beat>(message)) heard[std::size_t(id)].push_back(message);
    if (std::holds_alternative<Begin>(message)) ++begun;
  }
  template <class M>
  bool has(int id) const {
    const auto& all = heard[std::size_t(id)];
    return std::any_of(all.begin(), all.end(), [](const Message& m) { return std::holds_alternative<M>(m); });
  }
  /// Runs until it holds; false after too long.
  bool until(const std::function<bool()>& holds) {
    const Deadline late(too_long);
    std::function<void()> look = [&] {
      holds() || late.passed() ? loop.stop() : void(loop.after(0.002, look));
    };
    loop.after(0, look);
    loop.run();
    return holds();
  }

  Rules rules;
  std::string host;
  Loop loop;
  std::optional<Server> server;
  int port = 0, begun = 0;
  std::vector<std::unique_ptr<Client>> agents;
  std::vector<std::vector<Message>> heard;
  std::vector<std::string> cut_off;
  std::string given_up;
};

Descriptor stranger(const Venue& place) {
  std::string why;
  return connect_to({"127.0.0.1", place.port}, why);
}

}  // namespace

TEST(Rendezvous, of_1024_agents_takes_less_than_two_seconds) {
  Venue place(rules_for(1024, 1024));
  [[maybe_unused]] const std::clock_t began =
      std::clock();  // of this process, whatever else the machine does
  for (int i = 0; i < 1024; ++i) place.agent(i);
  ASSERT_TRUE(place.until([&] { return place.begun == 1024; }));
#ifdef NDEBUG
  EXPECT_LT(double(std::clock() - began) / CLOCKS_PER_SEC, 2);
#endif
  const auto last = std::get<Begin>(place.heard[1023][0]);
  EXPECT_EQ(last.node, 1023);
  EXPECT_EQ(last.first_rank, 1023 * 8);
  EXPECT_EQ(last.world, 1024 * 8);
  EXPECT_EQ(last.master, "127.0.0.1");
  EXPECT_EQ(std::get<Begin>(place.heard[0][0]).peers.size(), 1024u);
}

TEST(Rendezvous, is_not_changed_by_strangers) {
  Venue place(rules_for(2, 2), {.join_patience = 0.1});
  std::mt19937 draw(11);
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 300; ++i) {
    strangers.push_back(stranger(place));
    std::string bytes(std::size_t(draw() % 4000), '\0');
    for (char& c : bytes) c = char(draw());
    if (i % 3 == 1) bytes = std::string("\xff\x3f\0\0slow", 8);  // a frame that never ends
    if (i % 3 != 0)
      place.loop.after(0.01, [fd = strangers.back().get(), bytes] {
        static_cast<void>(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL));
      });
  }
  ASSERT_TRUE(place.until([&] { return place.server->connections() > 50; }));
  place.agent();
  place.agent();
  ASSERT_TRUE(place.until([&] { return place.begun == 2; }));
  EXPECT_LT(place.server->bytes_held(), 300u * (20u << 10));
  // Those that say nothing, or half a frame, are shown the door.
  ASSERT_TRUE(place.until([&] { return place.server->connections() == 2; }));
  EXPECT_TRUE(place.heard[0].size() == 1 && place.heard[1].size() == 1);
}

TEST(Rendezvous, tells_the_others_at_once_when_an_agent_is_gone) {
  Venue place(rules_for(3, 3));
  for (int i = 0; i < 3; ++i) place.agent(i);
  ASSERT_TRUE(place.until([&] { return place.begun == 3; }));
  const Stopwatch watch;
  place.agents[1]->close();
  ASSERT_TRUE(place.until([&] { return place.has<Stop>(0) && place.has<Stop>(2); }));
  EXPECT_LT(watch.seconds(), 3);  // by its silence it would be 4
}

TEST(Rendezvous, misses_an_agent_that_says_nothing) {
  Rules rules = rules_for(2, 2);
  rules.patience.beat = 0.05;
  Venue place(rules);
  place.agent(0);
  // It joins, and never beats.
  const Descriptor mute = stranger(place);
  const std::string join = encode(Join{.run_id = "none", .host = "mute", .wanted_rank = 1});
  place.loop.after(0.01,
                   [&] { static_cast<void>(send(mute.get(), join.data(), join.size(), MSG_NOSIGNAL)); });
  ASSERT_TRUE(place.until([&] { return place.begun == 1; }));
  const Stopwatch watch;
  ASSERT_TRUE(place.until([&] { return place.has<Stop>(0); }));
  EXPECT_GT(watch.seconds(), 0.1);
  // Half-open connections are not kept.
  ASSERT_TRUE(place.until([&] { return place.server->connections() == 1; }));
}

TEST(Rendezvous, is_found_again_after_the_coordinator_was_lost) {
  Venue place(rules_for(2, 2));
  place.agent(0);
  place.agent(1);
  ASSERT_TRUE(place.until([&] { return place.begun == 2; }));
  place.server.reset();
  ASSERT_TRUE(place.until([&] { return !place.cut_off[0].empty() && !place.cut_off[1].empty(); }));
  EXPECT_EQ(place.cut_off[0], "its connection was closed");
  place.server.emplace(place.loop, listen_at({"127.0.0.1", place.port}, Bind::here), place.rules,
                       Server::Options{});
  ASSERT_TRUE(place.until([&] { return place.begun == 4; }));
}

TEST(Rendezvous, is_over_ipv6_as_over_ipv4) {
  if (!listen_at({.host = "::1", .port = 0}, Bind::if_ours)) GTEST_SKIP() << "this machine has no IPv6";
  Venue place(rules_for(2, 2), {}, "::1");
  place.agent(1);
  place.agent(0);
  ASSERT_TRUE(place.until([&] { return place.begun == 2; }));
  EXPECT_EQ(std::get<Begin>(place.heard[0][0]).master, "::1");
}

// Where a name leads to both, who listens for all is found by either.
TEST(Rendezvous, at_a_wide_address_is_found_by_either_family) {
  if (!listen_at({.host = "::1", .port = 0}, Bind::if_ours)) GTEST_SKIP() << "this machine has no IPv6";
  Venue place(rules_for(2, 2), {}, "0.0.0.0");
  for (const char* by : {"127.0.0.1", "::1"}) {
    place.host = by;
    place.agent();
  }
  EXPECT_TRUE(place.until([&] { return place.begun == 2; }));
}

TEST(Rendezvous, is_given_up_when_nobody_is_there) {
  Venue place(rules_for(1, 1));
  place.rules.patience.join = 0.05;
  place.server.reset();
  place.agent(1);
  ASSERT_TRUE(place.until([&] { return !place.given_up.empty(); }));
  EXPECT_THAT(place.given_up, HasSubstr("launch: nobody answers at 127.0.0.1 port "));
  EXPECT_THAT(place.given_up,
              HasSubstr("for 0.05 s: Connection refused; is the agent with --node-rank 0 there?"));
}

TEST(Rendezvous, says_when_its_port_is_taken) {
  const Venue place(rules_for(1, 1));
  EXPECT_THAT(
      support::says([&] {
        listen_at({"127.0.0.1", place.port}, Bind::here);
      }),
      HasSubstr("Address already in use; another --master-port, or --standalone, needs none that is taken"));
  EXPECT_FALSE(listen_at({"127.0.0.1", place.port}, Bind::if_ours));
  for (const char* anothers : {"192.0.2.1", "2001:db8::1"})
    EXPECT_FALSE(listen_at({anothers, 0}, Bind::if_ours)) << anothers;
}
