// Real processes under the supervisor; /bin/sh stands in for programs.
#include "weft/launch/supervise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <linux/close_range.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>

#include "tests/support/temporary.h"
#include "weft/base/clock.h"
#include "weft/base/file.h"
#include "weft/base/format.h"
#include "weft/launch/contract.h"

using namespace weft;
using namespace weft::launch;
using testing::HasSubstr;
using testing::Not;

namespace {

struct Told {
  int status;
  std::string out, err;
  double seconds;
};

struct Script {
  std::string text;
  int workers = 1, max_restarts = 0;
  double grace = 10;
  Streams files = Streams::none, console = Streams::both;
  std::filesystem::path folder = {};
  std::string prefix = {};
  int save_signal = 0;
  int ranks = 1;
};

std::vector<Worker> workers_of(const Script& script, const Begin& begin) {
  std::vector<Worker> out;
  for (int i = 0; i < script.workers; ++i) {
    Worker worker{.words = {"/bin/sh", "-c", script.text}, .environment = environment_of_this_process()};
    apply({.begin = begin,
           .local_rank = i,
           .address = "127.0.0.1",
           .port = 29500,
           .run_id = "none",
           .role = "default"},
          worker.environment);
    worker.rank = worker.local_rank = i;
    worker.files = script.files;
    worker.console = script.console;
    if (!script.folder.empty())
      worker.folder = script.folder / text("attempt_", begin.restarts) / std::to_string(i);
    worker.prefix = script.prefix.empty() ? "" : script.prefix + std::to_string(i) + ": ";
    worker.save_signal = script.save_signal;
    worker.ranks = script.ranks;
    out.push_back(worker);
  }
  return out;
}

NodeJob job_of(const Script& script) {
  return {.rules = {.nodes = {}, .patience = {}, .max_restarts = script.max_restarts, .grace = script.grace},
          .self = {.run_id = "none", .host = "here", .address = "127.0.0.1", .slots = script.workers},
          .work = {.workers = [script](const Begin& begin) { return workers_of(script, begin); },
                   .progress = [] { return std::int64_t{-1}; },
                   .grace = script.grace},
          .signals = {SIGTERM, SIGINT}};
}

Told run(const Script& script) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const Stopwatch watch;
  const int status = supervise(job_of(script));
  const double seconds = watch.seconds();
  return {status, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr(), seconds};
}

/// In a child process, so that signals and kills meet a launcher of its own.
pid_t run_apart(const Script& script) {
  const pid_t child = fork();
  if (child != 0) return child;
  _exit(supervise(job_of(script)));
}

int status_of(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Opening a fifo to read waits for whoever opens it to write.
std::string read_fifo(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

/// `work` opens the fifo `ready` once it is under way.
void expect_nobody_left_by_a_killed_launcher(const std::string& work) {
  const support::TemporaryDirectory folder;
  for (const char* fifo : {"ready", "alive"}) mkfifo((folder / fifo).c_str(), 0600);
  const pid_t launcher =
      run_apart({.text = text("cd ", folder.path().string(), "; exec 3<>alive 4>alive; ", work)});
  read_fifo(folder / "ready");
  std::ifstream held(folder / "alive");
  kill(launcher, SIGKILL);
  EXPECT_EQ(status_of(launcher), 128 + SIGKILL);
  std::string line;
  EXPECT_FALSE(std::getline(held, line));
}

}  // namespace

TEST(Supervise, gives_workers_torchruns_contract) {
  const Told t = run({.text = "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $GROUP_RANK $MASTER_ADDR "
                              "$MASTER_PORT $TORCHELASTIC_RESTART_COUNT $TORCHELASTIC_RUN_ID",
                      .workers = 2,
                      .files = Streams::none});
  EXPECT_EQ(t.status, 0);
  EXPECT_THAT(t.out, HasSubstr("0 0 2 2 0 127.0.0.1 29500 0 none\n"));
  EXPECT_THAT(t.out, HasSubstr("1 1 2 2 0 127.0.0.1 29500 0 none\n"));
}

TEST(Supervise, gives_workers_an_empty_stdin_and_no_other_descriptor_of_it) {
  const support::TemporaryDirectory folder;
  const std::string to = (folder / "open").string();
  const pid_t child = fork();
  if (child == 0) {
    close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);  // what whoever runs tests has open is not the launcher's
    _exit(supervise(job_of({.text = text("exec ls -l /proc/self/fd > ", to, " 2>&1")})));
  }
  EXPECT_EQ(status_of(child), 0);
  const std::string all = read_file(to);
  EXPECT_THAT(all, HasSubstr(" 0 -> /dev/null\n"));
  EXPECT_EQ(all.find("/dev/null"), all.rfind("/dev/null")) << all;
}

TEST(Supervise, returns_a_workers_code_or_128_and_its_signal) {
  EXPECT_EQ(run({.text = "exit 7"}).status, 7);
  EXPECT_EQ(run({.text = "kill -SEGV $$"}).status, 128 + SIGSEGV);
  EXPECT_EQ(run({.text = "kill -ABRT $$"}).status, 128 + SIGABRT);
}

TEST(Supervise, tells_who_failed_first_with_its_last_words) {
  const Told t = run(
      {.text = "[ $RANK = 1 ] && { echo one >&2; echo the end >&2; exit 5; }; exec sleep 60", .workers = 3});
  EXPECT_EQ(t.status, 5);
  EXPECT_THAT(t.err, HasSubstr("launch: the job failed; --max-restarts is 0\n"
                               "  first: rank 1 on node 0 (host here): exit code 5, "));
  EXPECT_THAT(t.err, HasSubstr("  its last words:\n    one\n    the end\n"));
  EXPECT_THAT(t.err, Not(HasSubstr("then:")));
}

TEST(Supervise, says_of_which_ranks_a_process_was_that_failed) {
  const Told t = run({.text = "kill -SEGV $$", .ranks = 4});
  EXPECT_THAT(t.err,
              testing::ContainsRegex("first: the process of ranks 0 to 3 on node 0 \\(host here\\): signal "
                                     "11 \\(Segmentation fault\\), .* after the start; process [0-9]+\n"));
}

TEST(Supervise, stops_the_peers_of_a_failed_worker_though_they_do_not_hear) {
  // Rank 0 does not hear SIGTERM.
  const Told t = run({.text = "[ $RANK = 1 ] && exit 5; trap '' TERM; sleep 600", .workers = 2});
  EXPECT_EQ(t.status, 5);
  EXPECT_LT(t.seconds, 30);  // three, and what a busy machine takes
}

TEST(Supervise, starts_again_until_it_works) {
  const support::TemporaryDirectory folder;
  const std::string marks = (folder / "marks").string();
  const Told t = run({.text = text("echo x >> ", marks, "; [ $TORCHELASTIC_RESTART_COUNT = 2 ] || exit 1"),
                      .max_restarts = 3});
  EXPECT_EQ(t.status, 0);
  EXPECT_EQ(read_file(marks), "x\nx\nx\n");
  EXPECT_THAT(t.err, HasSubstr("restart 1 of 3 in 0.5 s\n"));
  EXPECT_THAT(t.err, HasSubstr("restart 2 of 3 in 1 s\n"));
  EXPECT_GE(t.seconds, 1.5);
}

TEST(Supervise, keeps_the_logs_of_every_attempt_and_rank) {
  const support::TemporaryDirectory folder;
  const Told t = run({.text = "echo out $RANK; echo err $RANK >&2; exit 9",
                      .workers = 1,
                      .max_restarts = 1,
                      .files = Streams::both,
                      .console = Streams::none,
                      .folder = folder.path()});
  for (const char* attempt : {"attempt_0", "attempt_1"}) {
    EXPECT_EQ(read_file(folder / attempt / "0/stdout.log"), "out 0\n");
    EXPECT_EQ(read_file(folder / attempt / "0/stderr.log"), "err 0\n");
  }
  EXPECT_EQ(t.out, "");
  EXPECT_THAT(t.err, HasSubstr("    err 0\n"));
  EXPECT_THAT(t.err, HasSubstr(text("its logs: ", (folder / "attempt_1/0").string())));
}

TEST(Supervise, tees_whole_lines_of_many_workers_and_loses_none) {
  const support::TemporaryDirectory folder;
  const Told t =
      run({.text = "i=0; while [ $i -lt 2000 ]; do echo $RANK line $i; i=$((i+1)); done; printf last",
           .workers = 4,
           .files = Streams::both,
           .folder = folder.path(),
           .prefix = "worker"});
  EXPECT_EQ(t.status, 0);
  std::vector<int> lines(4);
  for (const std::string_view line : split(t.out, '\n')) {
    if (line.empty() || line.ends_with("last")) continue;
    const auto rank = std::size_t(line[6] - '0');
    EXPECT_EQ(line, text("worker", rank, ": ", rank, " line ", lines[rank]++));
  }
  EXPECT_THAT(lines, testing::Each(2000));
  EXPECT_THAT(t.out, HasSubstr("worker3: last\n"));
  EXPECT_EQ(split(read_file(folder / "attempt_0/2/stdout.log"), '\n').size(), 2001u);
}

TEST(Supervise, says_what_cannot_be_run) {
  NodeJob job = job_of({});
  job.work.workers = [](const Begin&) { return std::vector<Worker>{{.words = {"/no/such/program"}}}; };
  testing::internal::CaptureStderr();
  EXPECT_EQ(supervise(job), 127);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("launch: cannot run /no/such/program: No such file or directory"));
}

TEST(Supervise, goes_on_where_nobody_reads_what_it_writes) {
  const support::TemporaryDirectory folder;
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  close(ends[0]);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    _exit(supervise(job_of({.text = "echo out; exit 5", .files = Streams::both, .folder = folder.path()})));
  }
  close(ends[1]);
  EXPECT_EQ(status_of(child), 5);
  EXPECT_EQ(read_file(folder / "attempt_0/0/stdout.log"), "out\n");
}

TEST(Supervise, passes_signals_on_and_waits_for_the_workers_own_end) {
  const support::TemporaryDirectory folder;
  const std::string ready = (folder / "ready").string();
  mkfifo(ready.c_str(), 0600);
  const pid_t launcher =
      run_apart({.text = text("trap 'exit 3' TERM; echo > ", ready, "; sleep 600 & wait")});
  read_fifo(ready);
  kill(launcher, SIGTERM);
  EXPECT_EQ(status_of(launcher), 3);
}

TEST(Supervise, kills_after_the_grace) {
  const support::TemporaryDirectory folder;
  const std::string ready = (folder / "ready").string();
  mkfifo(ready.c_str(), 0600);
  const pid_t launcher =
      run_apart({.text = text("trap '' TERM; echo > ", ready, "; sleep 600"), .grace = 0.2});
  read_fifo(ready);
  kill(launcher, SIGTERM);
  EXPECT_EQ(status_of(launcher), 128 + SIGKILL);
}

TEST(Supervise, lets_who_started_others_end_them_before_it_is_killed) {
  const support::TemporaryDirectory folder;
  const std::string ready = (folder / "ready").string();
  mkfifo(ready.c_str(), 0600);
  const pid_t launcher = run_apart({.text = text("trap '' USR2; trap 'exit 7' TERM; echo > ", ready,
                                                 "; while :; do sleep 600 & wait; done"),
                                    .grace = 0.2,
                                    .save_signal = SIGUSR2});
  read_fifo(ready);
  kill(launcher, SIGTERM);
  EXPECT_EQ(status_of(launcher), 7);
}

// Who holds `alive` open lives: the read ends when nobody does.
TEST(Supervise, leaves_no_worker_behind_when_it_is_killed) {
  expect_nobody_left_by_a_killed_launcher("echo > ready; exec sleep 600");
}

// The worker's child is no child of the launcher.
TEST(Supervise, leaves_nothing_that_a_worker_started_behind_when_it_is_killed) {
  expect_nobody_left_by_a_killed_launcher("(echo > ready; sleep 600; true); true");
}

TEST(Supervise, ends_what_workers_left_running) {
  const support::TemporaryDirectory folder;
  const std::string ready = (folder / "ready").string(), alive = (folder / "alive").string();
  mkfifo(ready.c_str(), 0600);
  mkfifo(alive.c_str(), 0600);
  // In a session of its own, it is not of the worker's process group; its child is nobody's when it is
  // killed.
  const pid_t launcher = run_apart({.text = text("setsid sh -c 'exec 3>", alive, "; echo > ", ready,
                                                 "; sleep 600; true' & read x < ", ready, "; exit 0")});
  std::ifstream held(alive);
  EXPECT_EQ(status_of(launcher), 0);
  std::string line;
  EXPECT_FALSE(std::getline(held, line));
}
