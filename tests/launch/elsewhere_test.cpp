#include "weft/launch/elsewhere.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary.h"
#include "weft/base/error.h"

using namespace weft::launch;
using testing::ElementsAre;
using weft::text;

TEST(Elsewhere, gives_mpirun_its_words) {
  EXPECT_THAT(mpirun_words({.count = 4}, {}, {{"NCCL_DEBUG", "1"}}),
              ElementsAre("mpirun", "-n", "4", "--oversubscribe", "--bind-to", "none"));
  EXPECT_THAT(mpirun_words({.count = 4, .trains = true}, {}, {}),
              ElementsAre("mpirun", "-n", "4", "--oversubscribe", "--mca", "odls_base_sigkill_timeout", "0",
                          "--bind-to", "none"));
  Options options;
  options.launcher_arguments = "--bind-to  core";
  options.ssh_port = 2222;
  options.by = By::ssh;
  const Processes there{
      .count = 2, .hostfile = "hosts", .folder = "logs", .console = false, .prefixed = true, .as_root = true};
  EXPECT_THAT(
      mpirun_words(there, options, {{"HOME", "/"}, {"NCCL_DEBUG", "1"}}),
      ElementsAre("mpirun", "-n", "2", "--oversubscribe", "--allow-run-as-root", "--bind-to", "core",
                  "--hostfile", "hosts", "-x", "NCCL_DEBUG", "--mca", "plm", "rsh", "--mca", "plm_rsh_args",
                  "-p 2222", "--output-filename", "logs:nojobid,nocopy", "--tag-output"));
}

TEST(Elsewhere, gives_srun_its_words) {
  Options options{.nodes = {2, 2}, .per_node = 4};
  EXPECT_THAT(
      srun_words({.count = 8, .folder = "logs"}, options),
      ElementsAre("srun", "--ntasks", "8", "--kill-on-bad-exit=1", "--mpi=pmix", "--nodes=2",
                  "--ntasks-per-node=4", "--output=logs/rank.%t.stdout", "--error=logs/rank.%t.stderr"));
}

TEST(Elsewhere, gives_srun_the_hosts_that_are_left) {
  const std::vector<Host> hosts{{"beta", {0, 1}}, {"gamma", {0, 2}}};
  EXPECT_THAT(srun_words({.count = 4, .hosts = hosts}, {.nodes = {1, 1}, .per_node = 2}),
              ElementsAre("srun", "--ntasks", "4", "--kill-on-bad-exit=1", "--mpi=pmix", "--nodes=2",
                          "--nodelist=beta,gamma", "--ntasks-per-node=2"));
}

// As Open MPI 4.1 says it.
TEST(Elsewhere, reads_which_rank_mpirun_lost) {
  const Said killed = read_mpirun(
      "out of memory in block 3\n"
      "--------------------------------------------------------------------------\n"
      "Primary job  terminated normally, but 1 process returned\n"
      "a non-zero exit code. Per user-direction, the job has been aborted.\n"
      "--------------------------------------------------------------------------\n"
      "--------------------------------------------------------------------------\n"
      "mpirun noticed that process rank 12 with PID 0 on node vm exited on signal 9 (Killed).\n"
      "--------------------------------------------------------------------------\n");
  EXPECT_EQ(killed.rank, 12);
  EXPECT_EQ(killed.end, (End{0, 9}));
  EXPECT_EQ(killed.words, "out of memory in block 3");
  EXPECT_EQ(killed.host, "vm");
  EXPECT_EQ(killed.process, 0);
  EXPECT_EQ(read_mpirun("noticed that process rank 1 with PID 77 on node a.b exited on signal 9").process,
            77);
  const Said left = read_mpirun(
      "mpirun detected that one or more processes exited with non-zero status, thus causing\n"
      "  Process name: [[15012,1],3]\n  Exit code:    5\n");
  EXPECT_EQ(left.rank, 3);
  EXPECT_EQ(left.end, (End{5, 0}));
  EXPECT_EQ(read_mpirun("nothing of the kind").rank, -1);
  EXPECT_TRUE(read_mpirun("nothing of the kind").end.good());
}

// As Open MPI 4.1 says it where a rank ends by an error of its own.
TEST(Elsewhere, reads_which_rank_called_for_the_end) {
  const std::string rule(74, '-');
  const std::string aborted = text(
      "before\n", rule,
      "\nMPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD\nwith errorcode 17.\n\n"
      "NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.\n"
      "You may or may not see output from other processes, depending on\nexactly when Open MPI kills them.\n",
      rule, "\nbetween\n", "[vm:77] 1 more process has sent help message help-mpi-api.txt / mpi-abort\n",
      "[vm:77] Set MCA parameter \"orte_base_help_aggregate\" to 0 to see all help / error messages\n");
  const Said said = read_mpirun(aborted);
  EXPECT_EQ(said.rank, 2);
  EXPECT_EQ(said.end, (End{17, 0}));
  EXPECT_EQ(said.words, "before\nbetween");
  const std::string lost = text(aborted, rule,
                                "\nmpirun noticed that process rank 1 with PID 0 on node vm exited on signal "
                                "11 (Segmentation fault).\n",
                                rule, "\n");
  EXPECT_EQ(read_mpirun(lost).rank, 1);
  EXPECT_EQ(read_mpirun(lost).end, (End{0, 11}));
}

TEST(Elsewhere, keeps_a_rule_that_a_rank_itself_wrote) {
  const std::string rule(74, '-');
  EXPECT_EQ(
      read_mpirun(text(rule, "\nmine\n", rule, "\nPrimary job  terminated normally\n", rule, "\nend")).words,
      text(rule, "\nmine\nend"));
  EXPECT_EQ(read_mpirun(text("a\n", rule, "\nb")).words, text("a\n", rule, "\nb"));
}

// As Slurm 22.05 says it.
TEST(Elsewhere, reads_which_task_srun_lost_first) {
  const Said left = read_srun(
      "no room\nsrun: error: alpha: task 1: Exited with exit code 2\n"
      "srun: launch/slurm: _step_signal: Terminating StepId=1.0\nsrun: error: beta: task 0: Terminated\n");
  EXPECT_EQ(left.rank, 1);
  EXPECT_EQ(left.end, (End{2, 0}));
  EXPECT_EQ(left.words, "no room");
  EXPECT_EQ(left.host, "alpha");
  EXPECT_EQ(read_srun("srun: error: beta: tasks 4-7: Killed\n").rank, 4);
  EXPECT_EQ(read_srun("srun: error: beta: tasks 4-7: Killed\n").host, "beta");
  EXPECT_EQ(read_srun("srun: error: Unable to create step\n").host, "");
  EXPECT_EQ(read_srun("srun: error: beta: tasks 4-7: Killed\n").end, (End{0, 9}));
}

TEST(Elsewhere, finds_what_a_rank_wrote_last) {
  const weft::support::TemporaryDirectory folder;
  std::filesystem::create_directories(folder / "rank.07");
  std::ofstream(folder / "rank.07/stderr") << "seven";
  std::ofstream(folder / "rank.0.stdout") << "no";
  std::ofstream(folder / "rank.0.stderr") << "zero";
  EXPECT_EQ(last_of_rank(folder.path(), 7), "seven");
  EXPECT_EQ(last_of_rank(folder.path(), 0), "zero");
  EXPECT_EQ(last_of_rank(folder.path(), 1), "");
  EXPECT_EQ(last_of_rank(folder / "none", 1), "");
}
