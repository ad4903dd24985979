// Few descriptors, a full process table, a network in two parts, a clock that jumps: nothing is taken for a
// death that is none, and what cannot be done is said.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <grp.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>
#include <set>
#include <type_traits>

#include "tests/support/temporary.h"
#include "weft/base/file.h"
#include "weft/launch/supervise.h"

using namespace weft;
using namespace weft::launch;
using testing::HasSubstr;

namespace {

NodeJob job_of(int workers) {
  return {.rules = {.nodes = {}, .patience = {}, .grace = 5},
          .self = {.run_id = "none", .host = "here", .address = "127.0.0.1", .slots = workers},
          .work = {.workers =
                       [workers](const Begin&) {
                         return std::vector<Worker>(std::size_t(workers),
                                                    Worker{.words = {"/bin/sh", "-c", "exec sleep 600"},
                                                           .environment = environment_of_this_process()});
                       },
                   .progress = [] { return std::int64_t{-1}; },
                   .grace = 5},
          .signals = {SIGTERM}};
}

struct Outcome {
  int status = 0;
  std::string said;
};

/// In a process of its own, under a limit.
Outcome under(int resource, rlim_t most, int workers) {
  const support::TemporaryDirectory folder;
  const std::string said = (folder / "said").string();
  const int to = open(said.c_str(), O_CREAT | O_RDWR, 0666);
  const pid_t child = fork();
  if (child == 0) {
    dup2(to, STDERR_FILENO);
    // Root has no limit of processes.
    if (geteuid() == 0 && (setgroups(0, nullptr) != 0 || setresgid(65534, 65534, 65534) != 0 ||
                           setresuid(65534, 65534, 65534) != 0))
      _exit(99);
    const rlimit limit{most, most};
    setrlimit(__rlimit_resource(resource), &limit);
    _exit(supervise(job_of(workers)));
  }
  close(to);
  int status = 0;
  waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_file(said)};
}

/// A coordinator and nodes that come, fall silent, fail, leave and stop as the dice say. A round may only
/// begin when all of the round before have stopped or are out.
class Dice {
 public:
  explicit Dice(unsigned seed)
      : draw_(seed),
        coordinator_(
            {.nodes = {2, 3}, .patience = {.join = 1e9, .last_call = 0}, .max_restarts = 1000}, 0,
            [this](int to, const Message& m) { told(to, m); }, [](const std::string&) {}) {}

  void play(int moves) {
    for (int i = 0; i < moves; ++i) move();
  }
  int rounds() const { return round_; }

 private:
  void told(int to, const Message& message) {
    if (const auto* begins = std::get_if<Begin>(&message)) {
      if (begins->round != round_) {
        EXPECT_EQ(working_, std::set<int>()) << "round " << begins->round << " begins beside " << round_;
        round_ = begins->round;
      }
      working_.insert(to);
    }
    if (std::holds_alternative<Refused>(message) || std::holds_alternative<Finish>(message)) out(to);
  }
  void out(int id) {
    working_.erase(id);  // whoever is out stops its workers by itself, and saves nothing without the others
    here_.erase(id);
    leaves_.erase(id);
  }
  int one_of(const std::set<int>& ids) {
    return *std::next(ids.begin(), std::ptrdiff_t(draw_() % ids.size()));
  }
  void move() {
    now_ += 0.5;
    const auto what = draw_() % 10;
    if (here_.size() < 4 && what < 3) {
      here_.insert(next_);
      coordinator_.joined(next_, {.run_id = "none", .host = "h"}, now_);
      ++next_;
    } else if (!here_.empty() && what == 3) {
      const int id = one_of(here_);
      out(id);
      coordinator_.gone(id, "its connection broke", now_);
    } else if (!working_.empty() && what == 4) {
      coordinator_.heard(one_of(working_), Failed{round_, {.rank = 0, .end = {1, 0}}}, now_);
    } else if (!working_.empty() && what < 8) {
      const int id = one_of(working_);
      working_.erase(id);
      coordinator_.heard(id, Stopped{round_, 1, round_}, now_);
    } else if (here_.size() == 4 && leaves_.empty() && what == 8) {  // enough are left, so the job goes on
      const int id = one_of(here_);
      leaves_.insert(id);
      coordinator_.heard(id, Leaving{SIGTERM}, now_);
    }
    // Some are silent for long: a part of the network is cut off.
    for (const int id : std::set<int>(here_))
      if (id % 3 != 0 || draw_() % 40 == 0) coordinator_.heard(id, Beat{}, now_);
    coordinator_.tick(now_);
  }

  std::mt19937 draw_;
  Coordinator coordinator_;
  double now_ = 0;
  int next_ = 0, round_ = 0;
  std::set<int> here_, working_, leaves_;
};

}  // namespace

TEST(Scarce, few_descriptors_are_enough_for_few_workers_or_are_said) {
  const Outcome many = under(RLIMIT_NOFILE, 24, 16);
  EXPECT_EQ(many.status, 127);
  EXPECT_THAT(many.said, HasSubstr("Too many open files"));
}

TEST(Scarce, a_full_process_table_is_said) {
  const Outcome none = under(RLIMIT_NPROC, 0, 2);
  if (none.status == 99) GTEST_SKIP() << "this system lets nobody be somebody else";
  EXPECT_EQ(none.status, 127);
  EXPECT_THAT(none.said,
              HasSubstr("launch: cannot start the keeper of its workers: Resource temporarily unavailable"));
}

TEST(Scarce, no_clock_that_can_be_set_is_asked) {
  EXPECT_TRUE(Loop::Clock::is_steady);
  EXPECT_TRUE((std::is_same_v<Loop::Clock, std::chrono::steady_clock>));
}

TEST(Scarce, no_round_begins_beside_another_however_the_network_falls_apart) {
  int rounds = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    Dice dice(seed);
    dice.play(200);
    rounds += dice.rounds();
  }
  EXPECT_GT(rounds, 3000);
}
