// Processes of this machine that hold a line, and end in every way.
#include "weft/launch/lifeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <optional>

#include "tests/support/says.h"
#include "weft/base/clock.h"
#include "weft/launch/agent.h"
#include "weft/launch/ward.h"

using namespace weft;
using namespace weft::launch;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

struct Lined {
  Lined() : name(new_token()), listener(listen_for_lives(name)) {
    lives.emplace(loop, listener.get(), [this](const Lifelines::Loss& loss) { lost.push_back(loss); });
  }
  bool until(const std::function<bool()>& holds) {
    const Deadline late(60);
    std::function<void()> look = [&] {
      holds() || late.passed() ? loop.stop() : void(loop.after(0.002, look));
    };
    loop.after(0, look);
    loop.run();
    return holds();
  }
  std::string name;
  Loop loop;
  Descriptor listener;
  std::vector<Lifelines::Loss> lost;
  std::optional<Lifelines> lives;
};

/// A process that holds a line and does this then.
pid_t rank_that(const std::string& name, int rank, const std::function<void(const Lifeline&)>& acts) {
  const pid_t out = fork();
  if (out != 0) return out;
  const Lifeline line(name, 1, rank);
  acts(line);
  _exit(0);
}

void waits(const Lifeline&) { pause(); }

void reap_of(pid_t process) { waitpid(process, nullptr, 0); }

}  // namespace

TEST(Lifeline, is_cut_when_its_process_is_killed) {
  Lined place;
  const pid_t one = rank_that(place.name, 4, waits);
  ASSERT_TRUE(place.until([&] { return !place.lives->processes().empty(); }));
  EXPECT_THAT(place.lives->processes(), ElementsAre(one));
  EXPECT_TRUE(place.lost.empty());
  place.loop.after(0.01, [one] { kill(one, SIGKILL); });
  ASSERT_TRUE(place.until([&] { return !place.lost.empty(); }));
  EXPECT_EQ(place.lost[0].rank, 4);
  EXPECT_EQ(place.lost[0].round, 1);
  EXPECT_EQ(place.lost[0].process, one);
  EXPECT_EQ(place.lost[0].code, -1);
  EXPECT_TRUE(place.lives->processes().empty());
  reap_of(one);
}

TEST(Lifeline, tells_once_that_its_rank_fails_and_nothing_of_one_that_ends_well) {
  Lined place;
  const pid_t well = rank_that(place.name, 0, [](const Lifeline& line) { line.ends(); });
  const pid_t badly = rank_that(place.name, 1, [](const Lifeline& line) { line.fails(7); });
  reap_of(well);
  reap_of(badly);
  ASSERT_TRUE(place.until([&] { return !place.lost.empty() && place.lives->processes().empty(); }));
  ASSERT_EQ(place.lost.size(), 1U);
  EXPECT_EQ(place.lost[0].rank, 1);
  EXPECT_EQ(place.lost[0].code, 7);
}

TEST(Lifeline, leads_to_whoever_is_left) {
  Lined place;
  const pid_t one = rank_that(place.name, 0, waits);
  ASSERT_TRUE(place.until([&] { return !place.lives->processes().empty(); }));
  place.lives->end_all();
  int how = 0;
  waitpid(one, &how, 0);
  EXPECT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
}

TEST(Lifeline, is_none_where_nobody_listens_and_its_name_is_one_launchers) {
  const Lifeline nowhere(new_token(), 1, 0), nobody("", 1, 0);
  nowhere.fails(1);
  nobody.ends();
  const std::string name = new_token();
  const Descriptor held = listen_for_lives(name);
  EXPECT_EQ(support::says([&] { listen_for_lives(name); }),
            "device: launch: no socket for the lines of its ranks: Address already in use");
}

TEST(Lifeline, of_a_stranger_who_says_nothing_is_nobodys) {
  Lined place;
  {
    const Lifeline line(place.name, 1, -1);  // a rank that cannot be
    ASSERT_TRUE(place.until([&] { return !place.lives->processes().empty(); }));
  }
  ASSERT_TRUE(place.until([&] { return place.lives->processes().empty(); }));
  EXPECT_TRUE(place.lost.empty());
}

namespace {

/// What an agent says and tells of a rank that is killed, under a launcher that says this of it in the end.
struct Story {
  std::string said;
  std::vector<Failure> failures;
  double seconds = 0;  // that passed, or leapt
};

std::string all_of(int pipe) {
  std::string out(4096, '\0');
  const ssize_t got = read(pipe, out.data(), out.size());
  return out.substr(0, std::size_t(std::max<ssize_t>(0, got)));
}

Story killed_under(const std::string& script, Loop::Time time,
                   const std::function<void(Failure&, int)>& explain) {
  Story story;
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return story;
  const Descriptor hear(ends[0]), tell(ends[1]);
  Loop loop(time);
  Console out(loop, STDOUT_FILENO), err(loop, tell.get());
  const std::string name = new_token();
  const Descriptor lives = listen_for_lives(name);
  const auto workers = [&](const Begin&) {
    return std::vector<Worker>{{.words = {"/bin/sh", "-c", script},
                                .environment = environment_of_this_process(),
                                .folder = {},
                                .prefix = {},
                                .overheard = true,
                                .save_signal = SIGUSR2}};
  };
  const auto heard = [&](const Message& m) {
    if (const auto* failed = std::get_if<Failed>(&m)) story.failures.push_back(failed->failure);
    if (std::holds_alternative<Stopped>(m)) loop.stop();
  };
  Agent agent(
      {.workers = workers,
       .progress = [] { return std::int64_t{-1}; },
       .lives = lives.get(),
       .explain = explain,
       .where = [](int, std::string_view) { return Whereabouts{.node = 0, .host = "here"}; }},
      {.loop = loop, .consoles = {out, err}, .tell = heard, .finish = [](int, const std::string&) {}});
  agent.heard(Begin{.round = 1, .master = "127.0.0.1", .peers = {}});
  const pid_t rank = rank_that(name, 2, [](const Lifeline&) { kill(getpid(), SIGKILL); });
  reap_of(rank);
  const auto began = loop.now();
  loop.run();
  story.seconds = std::chrono::duration<double>(loop.now() - began).count();
  err.flush(1);
  story.said = all_of(hear.get());
  return story;
}

}  // namespace

TEST(Lifeline, that_is_cut_is_told_at_once_and_the_launcher_says_how_it_was) {
  const Story story = killed_under("sleep 0.3; exit 137", Loop::Time::passes, [](Failure& f, int seen) {
    EXPECT_EQ(seen, 2);
    f.rank = 2;
    f.end = {.code = 0, .signal = SIGKILL};
  });
  EXPECT_THAT(story.said,
              HasSubstr("launch: rank 2 on node 0 (host here) is gone; mpirun ends the others\n"));
  ASSERT_EQ(story.failures.size(), 1U);
  EXPECT_EQ(story.failures[0].end, (End{0, SIGKILL}));
  EXPECT_GT(story.failures[0].process, 0);
  EXPECT_GT(story.failures[0].age, 0.1);  // it is the line's time that counts
}

TEST(Lifeline, that_is_cut_counts_for_more_than_whom_the_launcher_names) {
  const Story other = killed_under("sleep 0.3; exit 1", Loop::Time::passes, [](Failure& f, int) {
    f.rank = 0;
    f.end = {.code = 1, .signal = 0};
  });
  ASSERT_EQ(other.failures.size(), 1U);
  EXPECT_EQ(other.failures[0].rank, 2);
  EXPECT_EQ(other.failures[0].what, "is gone, before rank 0, of which mpirun says exit code 1");
}

// It neither ends the others nor hears of SIGTERM.
TEST(Lifeline, that_is_cut_ends_a_launcher_that_hangs) {
  const Story story = killed_under("trap '' TERM; exec sleep 600", Loop::Time::leaps,
                                   [](Failure& f, int) { f.launcher = "mpirun"; });
  EXPECT_LT(story.seconds, 6 + 2);  // seconds that a machine with much to do may take
  ASSERT_EQ(story.failures.size(), 1U);
  EXPECT_EQ(story.failures[0].rank, 2);
  EXPECT_EQ(story.failures[0].what, "is gone, and mpirun does not say how");
  EXPECT_EQ(story.failures[0].launcher, "");
}
