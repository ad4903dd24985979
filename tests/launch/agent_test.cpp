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
#include "weft/launch/elsewhere.h"

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

/// What is told of a launcher of ranks that says and does this: `sh`'s text.
std::vector<Message> told_of(const std::string& script) {
  Loop loop(Loop::Time::passes);
  Console out(loop, STDOUT_FILENO), err(loop, STDERR_FILENO);
  std::vector<Message> told;
  const auto workers = [&](const Begin&) {
    return std::vector<Worker>{{.words = {"/bin/sh", "-c", script},
                                .environment = environment_of_this_process(),
                                .folder = {},
                                .prefix = {},
                                .overheard = true}};
  };
  const auto hear = [&](const Message& m) {
    told.push_back(m);
    if (std::holds_alternative<Done>(m) || std::holds_alternative<Stopped>(m)) loop.stop();
  };
  const auto explain = [](Failure& failure, int) {
    const Said said = read_srun(failure.last_words);
    failure.rank = said.rank;
    failure.end = said.end;
  };
  Agent agent({.workers = workers,
               .progress = [] { return std::int64_t{-1}; },
               .stopped_codes = {3},
               .explain = explain,
               .waits_for_others = true},
              {.loop = loop, .consoles = {out, err}, .tell = hear, .finish = [](int, const std::string&) {}});
  agent.heard(Begin{.round = 1, .master = "127.0.0.1", .peers = {}});
  loop.run();
  return told;
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

// srun ends the others at once and gives the signal's status, which would be a failure of a run that has
// saved.
TEST(Agent, has_the_code_of_the_first_rank_that_stopped_on_purpose_where_srun_ended_the_others) {
  const auto srun = [](int code) {
    return text("echo 'srun: error: beta: task 1: Exited with exit code ", code,
                "' >&2; echo 'srun: error: alpha: task 0: Terminated' >&2; exit 143");
  };
  const std::vector<Message> stopped = told_of(srun(3)), failed = told_of(srun(4));
  ASSERT_EQ(stopped.size(), 1U);
  ASSERT_TRUE(std::holds_alternative<Done>(stopped[0]));
  EXPECT_EQ(std::get<Done>(stopped[0]).status, 3);
  ASSERT_EQ(failed.size(), 2U);
  ASSERT_TRUE(std::holds_alternative<Failed>(failed[0]));
  EXPECT_EQ(std::get<Failed>(failed[0]).failure.rank, 1);
  EXPECT_EQ(std::get<Failed>(failed[0]).failure.end, (End{.code = 4, .signal = 0}));
}
