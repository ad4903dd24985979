#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "tests/cli/told.h"
#include "tests/support/temporary.h"
#include "weft/base/file.h"
#include "weft/cli/job_here.h"
#include "weft/cli/job_program.h"
#include "weft/cli/verbs.h"

using namespace weft;
using namespace weft::cli;
using testing::HasSubstr;

namespace {

// Says what was asked of it, and answers by what comes first. What it knows is a cluster of two pods, one of
// which ran out of memory.
constexpr const char* kubectl = R"sh(#!/bin/sh
echo "$*" >> "$(dirname "$0")/asked"
case "$1 $2" in
"get pods,jobs.batch")
  case "$*" in *"weft/job=gpt "*) ;; *) echo '{"kind": "List", "items": []}'; exit 0 ;; esac
  cat <<'END'
{"kind": "List", "items": [
 {"kind": "Job", "metadata": {"name": "gpt"}, "status": {"conditions": [{"type": "Failed", "status": "True", "reason": "PodFailurePolicy"}]}},
 {"kind": "Pod", "metadata": {"name": "gpt-1"}, "spec": {"nodeName": "b", "containers": [{"resources": {"requests": {"cpu": 2}}}]},
  "status": {"phase": "Failed", "containerStatuses": [{"restartCount": 0, "state": {"terminated": {"exitCode": 2, "finishedAt": "2026-01-01T00:00:00Z"}}}]}},
 {"kind": "Pod", "metadata": {"name": "gpt-0"}, "spec": {"nodeName": "a", "containers": []}, "status": {"phase": "Running"}}]}
END
  ;;
"get events") echo '{"items": [{"type": "Normal", "reason": "Created", "involvedObject": {"name": "gpt"},
  "lastTimestamp": "2026-01-01T00:00:00Z", "message": "m"}]}' ;;
"logs gpt-1") printf 'first\n--lr is not set\n' ;;
"logs -l") echo "[pod/gpt-0] iteration 1" ;;
"top pods") echo "error: Metrics API not available" >&2; exit 1 ;;
esac
)sh";

/// An emulator of another processor starts what is not there all the same, and its end is all that is heard.
bool says_at_once_that_a_program_is_missing() {
  std::string name = "/nowhere/program";
  std::array<char*, 2> words{name.data(), nullptr};
  pid_t id = 0;
  if (posix_spawn(&id, name.c_str(), nullptr, nullptr, words.data(), environ) != 0) return true;
  ::waitpid(id, nullptr, 0);
  return false;
}

class Looking : public ::testing::Test {
 protected:
  Looking() {
    write_atomically(folder_ / "kubectl", kubectl);
    chmod(program().c_str(), 0755);
  }
  std::string program() const { return (folder_ / "kubectl").string(); }
  std::string runs() const { return (folder_ / "runs").string(); }
  Told look(std::vector<std::string> words, const std::string& who = "") const {
    words.insert(words.end(), {"--runs", runs(), "--kubectl", who.empty() ? program() : who});
    return told(job_verb(), std::move(words));
  }
  /// As the launcher leaves it.
  void ran(int status, const std::string& said) const {
    RunRecord record(folder_ / "runs/tiny", {"--nproc-per-node", "2", "pretrain_gpt.py"});
    for (const char* attempt : {"attempt_0", "attempt_1"})
      make_directories(record.logs() / "tiny_x" / attempt / "0");
    write_atomically(record.logs() / "tiny_x/attempt_1/0/stderr.log", said);
    record.end(status);
  }
  support::TemporaryDirectory folder_;
};

}  // namespace

TEST_F(Looking, says_what_became_of_a_job_why_and_the_last_words) {
  const Told said = look({"status", "gpt", "--namespace", "lab"});
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_EQ(said.out,
            "gpt: Error: pod gpt-1: exit code 2: a mistake in the flags (PodFailurePolicy)\n"
            "  gpt-0  Running    a  restarts 0\n"
            "  gpt-1  Failed     b  restarts 0  exit code 2: a mistake in the flags\n"
            "last words of gpt-1:\n  first\n  --lr is not set\n");
  EXPECT_EQ(read_file(folder_ / "asked"),
            "get pods,jobs.batch -l weft/job=gpt -o json --namespace lab\n"
            "logs gpt-1 --all-containers --tail 10 --namespace lab\n");
}

TEST_F(Looking, hands_on_logs_and_tells_events_and_resources) {
  EXPECT_EQ(look({"events", "gpt"}).out, "2026-01-01T00:00:00Z  Normal  Created  gpt  m\n");
  EXPECT_EQ(look({"resources", "gpt"}).out,
            "  gpt-1  asks for cpu 2; may have nothing\n  gpt-0  asks for nothing; may have nothing\n"
            "  all  asks for cpu 2; may have nothing\n"
            "what is in use now, the cluster does not say: error: Metrics API not available\n");
  EXPECT_EQ(look({"logs", "gpt", "--tail=5"}).status, 0);
  EXPECT_THAT(read_file(folder_ / "asked"),
              HasSubstr("logs -l weft/job=gpt --all-containers --prefix --tail 5 --max-log-requests 1024\n"));
}

TEST_F(Looking, says_where_it_looked_in_vain) {
  EXPECT_EQ(
      look({"status", "bert"}).err,
      text(
          "job status: no pod and no Job is labelled weft/job=bert, and no run named bert was started here (",
          runs(), "): weft job render writes a job for a cluster, weft job run starts one\n"));
  EXPECT_THAT(look({"status", "gpt"}, "false").err,
              HasSubstr("job status: kubectl says: , and no run named gpt"));
}

TEST_F(Looking, leaves_the_log_of_kubectls_library_out) {
  const std::string noisy = (folder_ / "noisy").string();
  write_atomically(noisy,
                   "#!/bin/sh\necho 'E1130 23:43:58.5 1 memcache.go:265] \"Unhandled Error\"' >&2\n"
                   "echo 'The connection was refused' >&2\necho 'Is it there?' >&2\nexit 1\n");
  chmod(noisy.c_str(), 0755);
  EXPECT_THAT(
      look({"status", "gpt"}, noisy).err,
      testing::StartsWith("job status: kubectl says: The connection was refused Is it there?, and no"));
}

TEST_F(Looking, says_that_there_is_no_program_to_look_with) {
  if (!says_at_once_that_a_program_is_missing()) GTEST_SKIP() << "nothing here says that it is missing";
  EXPECT_THAT(
      look({"logs", "bert"}, "/nowhere/kubectl").err,
      HasSubstr(
          "job logs: there is no program /nowhere/kubectl to ask a cluster with, and no run named bert"));
}

TEST_F(Looking, tells_of_the_run_here_where_no_cluster_has_the_job) {
  ran(2, "one\ntwo\n");
  EXPECT_THAT(look({"status", "tiny"}).out,
              testing::MatchesRegex(
                  "tiny: Error: exit code 2: a mistake in the flags\n  here, since [^,]*, until [^,]*\n"
                  "its last words:\n.0. one\n.0. two\n"));
  EXPECT_EQ(look({"logs", "tiny", "--here", "--tail", "1"}).out, "[0] two\n");
  EXPECT_EQ(look({"resources", "tiny"}, "/nowhere/kubectl").out, "nothing: it has ended\n");
  EXPECT_THAT(look({"events", "tiny"}).out,
              testing::AllOf(HasSubstr("weft launch --nproc-per-node 2 pretrain_gpt.py\n"),
                             HasSubstr("Warning  Restarted  tiny  start 2\n"),
                             HasSubstr("Warning  Failed  tiny  exit code 2")));
}

TEST_F(Looking, tells_a_run_that_goes_on_from_one_that_was_killed) {
  {
    const RunRecord record(folder_ / "runs/tiny", {"a"});
    EXPECT_THAT(look({"status", "tiny", "--here"}).out, HasSubstr("tiny: Running\n"));
    EXPECT_THAT(look({"resources", "tiny", "--here"}).out, HasSubstr("of memory\n"));
    EXPECT_THROW(RunRecord(folder_ / "runs/tiny", {"a"}), Error);
  }
  EXPECT_THAT(look({"status", "tiny", "--here"}).out,
              HasSubstr("tiny: Error: it was killed: nothing was written at its end\n"));
  ran(0, "");
  EXPECT_THAT(look({"status", "tiny", "--here"}).out, HasSubstr("tiny: Succeeded\n"));
}

TEST_F(Looking, refuses_what_it_does_not_understand) {
  EXPECT_EQ(look({"status"}).err, "job status: name the job: weft job status NAME\n");
  EXPECT_EQ(look({"status", "a", "b"}).err, "job status: 'b' behind a; one job at a time\n");
  EXPECT_THAT(look({"status", "A"}).err, HasSubstr("job status: 'A' is no name of a service"));
  EXPECT_EQ(look({"logs", "a", "--tale", "3"}).err,
            "job logs: --tale is not an option, did you mean tail; weft help job lists them\n");
  EXPECT_EQ(look({"logs", "a", "--tail", "x"}).err, "job logs: --tail: 'x' is not a number of lines\n");
  EXPECT_EQ(look({"logs", "a", "--here=1"}).err, "job logs: --here takes no value\n");
}

TEST(AnotherProgram, is_heard_to_its_end) {
  const Answer both = ask("sh", {"-c", "yes | head -c 300000; echo no >&2; exit 3"});
  EXPECT_EQ(both.out.size(), 300000u);
  EXPECT_EQ(both.err, "no\n");
  EXPECT_EQ(both.status, 3);
  EXPECT_EQ(ask("sh", {"-c", "kill -9 $$"}).status, 137);
}

TEST(AnotherProgram, may_be_missing) {
  if (!says_at_once_that_a_program_is_missing()) GTEST_SKIP() << "nothing here says that it is missing";
  EXPECT_TRUE(ask("/nowhere/program", {}).missing);
}
