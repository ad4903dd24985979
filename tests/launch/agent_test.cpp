// A node's side of a job that loses the coordinator; /bin/sh stands in for a worker that hears no signal.
#include "weft/launch/agent.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <functional>

#include "tests/support/temporary.h"
#include "weft/base/error.h"

using namespace weft;
using namespace weft::launch;

namespace {

/// Seconds from what is done to the agent until its worker has ended; time leaps meanwhile.
double seconds_until_alone(const std::function<void(Agent&)>& act) {
  const support::TemporaryDirectory folder;
  const std::string ready = (folder / "ready").string();
  mkfifo(ready.c_str(), 0600);
  Loop loop(Loop::Time::leaps);
  Console out(loop, STDOUT_FILENO), err(loop, STDERR_FILENO);
  const auto workers = [&](const Begin&) {
    return std::vector<Worker>{
        {.words = {"/bin/sh", "-c", text("trap '' TERM; echo > ", ready, "; exec sleep 600")},
         .environment = environment_of_this_process(),
         .folder = {},
         .prefix = {}}};
  };
  Agent agent({.workers = workers, .progress = [] { return std::int64_t{-1}; }, .grace = 25},
              {.loop = loop,
               .consoles = {out, err},
               .tell = [](const Message&) {},
               .finish = [](int, const std::string&) {},
               .stopped_alone = [&] { loop.stop(); }});
  agent.heard(Begin{.round = 1, .master = "127.0.0.1", .peers = {}});
  std::string line;
  std::ifstream waits(ready);
  std::getline(waits, line);
  const auto began = loop.now();
  act(agent);
  loop.run();
  return std::chrono::duration<double>(loop.now() - began).count();
}

constexpr double busy = 2;  // seconds that a machine with much to do may take

}  // namespace

// The coordinator begins without it 4 s after the moment at which it can know that it is cut off.
TEST(Agent, that_is_cut_off_has_stopped_its_workers_before_others_begin) {
  EXPECT_LT(seconds_until_alone([](Agent& agent) { agent.cut_off(); }), 3 + busy);
  EXPECT_LT(seconds_until_alone([](Agent& agent) {
              agent.heard(Stop{.round = 1, .signal = SIGTERM, .grace = 25});
              agent.cut_off();
            }),
            3 + busy);
}

TEST(Agent, that_a_signal_told_to_end_gives_its_workers_their_grace) {
  EXPECT_GT(seconds_until_alone([](Agent& agent) {
              agent.leave(SIGTERM);
              agent.cut_off();
            }),
            24);
}

// Nobody knows that it leaves, so nobody waits for it.
TEST(Agent, whose_word_that_it_leaves_was_not_heard_stops_as_others_do) {
  EXPECT_LT(seconds_until_alone([](Agent& agent) {
              agent.leave(SIGTERM);
              agent.cut_off();  // nobody answers
              agent.cut_off();  // and nobody is there
            }),
            3 + busy);
}
