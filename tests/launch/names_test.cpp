// Hosts' names while agents go on, and a name server that never answers; a service of the test's stands in.
#include "weft/launch/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <atomic>
#include <future>
#include <optional>

#include "weft/base/clock.h"
#include "weft/launch/client.h"
#include "weft/launch/rendezvous.h"

using namespace weft;
using namespace weft::launch;
using testing::HasSubstr;

namespace {

/// Answers once it is let; its threads may outlive the test's body, so what they need is theirs.
class SlowServer {
 public:
  explicit SlowServer(std::string leads_to = "127.0.0.1") : leads_to_(std::move(leads_to)) {}
  ~SlowServer() { answer(); }
  SlowServer(const SlowServer&) = delete;
  SlowServer& operator=(const SlowServer&) = delete;
  NameService service() const {
    return [may = may_, asked = asked_, to = leads_to_](const std::string&) {
      ++*asked;
      may.wait();
      return numeric(to);
    };
  }
  void answer() {
    if (!std::exchange(answered_, true)) let_.set_value();
  }
  int asked() const { return *asked_; }

 private:
  std::string leads_to_;
  std::promise<void> let_;
  std::shared_future<void> may_ = let_.get_future().share();
  std::shared_ptr<std::atomic<int>> asked_ = std::make_shared<std::atomic<int>>(0);
  bool answered_ = false;
};

int family_of(const Found& found) { return found.addresses.at(0).at.ss_family; }

Rules one_node() {
  return {.nodes = {1, 1}, .patience = {.join = 0.4, .last_call = 0.05, .beat = 1, .missed_beats = 4}};
}

}  // namespace

TEST(Names, that_are_numbers_are_known_at_once) {
  const NameService nobody = [](const std::string& host) { return Found{{}, "asked for " + host}; };
  const Lookup four("10.0.0.7", nobody), six("fd00::7", nobody);
  ASSERT_TRUE(four.found() != nullptr && six.found() != nullptr);
  EXPECT_EQ(family_of(*four.found()), AF_INET);
  EXPECT_EQ(family_of(*six.found()), AF_INET6);
  EXPECT_THAT(numeric("first").why, HasSubstr("host first is not known: "));
}

TEST(Names, are_heard_of_through_the_loop) {
  SlowServer server("fd00::7");
  Loop loop;
  const Lookup lookup("first", server.service());
  EXPECT_EQ(lookup.found(), nullptr);
  loop.watch(lookup.bell(), EPOLLIN, [&](std::uint32_t) { loop.stop(); });
  server.answer();
  loop.run();
  ASSERT_NE(lookup.found(), nullptr);
  EXPECT_EQ(family_of(*lookup.found()), AF_INET6);
}

TEST(Names, hold_nobody_who_goes) {
  SlowServer server;
  const Stopwatch watch;
  std::optional<Lookup> lookup(std::in_place, "first", server.service());
  lookup.reset();
  EXPECT_LT(watch.seconds(), 30);  // it would be for ever
}

TEST(Names, are_asked_for_once_while_nobody_answers) {
  SlowServer server;
  Loop loop;
  Lookups all(server.service());
  const int bell = all.of("first").bell();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(all.of("first").bell(), bell);
  loop.watch(bell, EPOLLIN, [&](std::uint32_t) { loop.stop(); });
  server.answer();
  loop.run();
  EXPECT_EQ(server.asked(), 1);
  EXPECT_EQ(family_of(all.take("first")), AF_INET);
}

// The loop beats on, and gives up in its time.
TEST(Names, that_nobody_knows_do_not_hold_an_agent_up) {
  SlowServer server;
  Loop loop;
  int beats = 0;
  std::string why;
  std::function<void()> beat = [&] {
    ++beats;
    loop.after(0.01, beat);
  };
  loop.after(0, beat);
  const Client client(loop, {"first", 4711}, Join{.run_id = "none", .host = "h"}, one_node().patience,
                      {.heard = [](const Message&) {},
                       .cut_off = [](const std::string&) {},
                       .given_up =
                           [&](const std::string& said) {
                             why = said;
                             loop.stop();
                           },
                       .names = server.service()});
  loop.run();
  EXPECT_GT(beats, 10);  // of 40
  EXPECT_EQ(server.asked(), 1);
  EXPECT_EQ(
      why,
      "launch: nobody answers at first port 4711 for 0.4 s: host first is not known yet: no name server "
      "answers; is the agent with --node-rank 0 there?");
}

TEST(Names, that_come_late_are_where_agents_meet) {
  SlowServer server;
  Loop loop;
  const Rules rules = one_node();
  const Join self{.run_id = "none", .host = "h"};  // of no rank: it serves if the name is its own
  bool begun = false;
  std::string why;
  Rendezvous meeting(loop, {.rules = rules, .self = self, .names = server.service()}, {{"first", 0}},
                     {.heard =
                          [&](const Message& m) {
                            begun = begun || std::holds_alternative<Begin>(m);
                            if (begun) loop.stop();
                          },
                      .cut_off = [](const std::string&) {},
                      .given_up =
                          [&](const std::string& said) {
                            why = said;
                            loop.stop();
                          },
                      .say = [](const std::string&) {}});
  EXPECT_FALSE(meeting.coordinates());
  meeting.tell(Leaving{});  // to nobody
  loop.after(0.05, [&] { server.answer(); });
  loop.run();
  EXPECT_TRUE(begun) << why;
  EXPECT_TRUE(meeting.coordinates());
}
