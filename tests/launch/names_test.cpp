// Agents that meet at a name, and a name server that never answers, or late; a service of the test's stands
// in.
#include <gtest/gtest.h>

#include "tests/support/slow_names.h"
#include "weft/launch/client.h"
#include "weft/launch/rendezvous.h"

using namespace weft;
using namespace weft::launch;
using support::SlowNames;

namespace {

Rules one_node() {
  return {.nodes = {1, 1}, .patience = {.join = 0.4, .last_call = 0.05, .beat = 1, .missed_beats = 4}};
}

}  // namespace

// The loop beats on, and gives up in its time.
TEST(Names, that_nobody_knows_do_not_hold_an_agent_up) {
  SlowNames server;
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
  EXPECT_GE(beats, 4);  // of 40, or of fewer where others want the processor; once, where it is held up
  EXPECT_EQ(server.asked(), 1);
  EXPECT_EQ(
      why,
      "launch: nobody answers at first port 4711 for 0.4 s: host first is not known yet: no name server "
      "answers; is the agent with --node-rank 0 there?");
}

TEST(Names, that_come_late_are_where_agents_meet) {
  SlowNames server;
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
