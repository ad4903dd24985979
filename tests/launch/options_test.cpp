#include "weft/launch/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "tests/support/says.h"
#include "tests/support/source_dir.h"

using namespace weft;
using namespace weft::launch;
using testing::ElementsAre;
using weft::support::says;

namespace {

Options options(std::vector<std::string_view> words, const Environment& environment = {}) {
  words.insert(words.end(), {"train", "gpt"});
  return read_options(words, environment);
}

std::string refused(const std::vector<std::string_view>& words, const Environment& environment = {}) {
  return says([&] { options(words, environment); });
}

}  // namespace

TEST(Options, leave_everything_behind_the_program_to_it) {
  const std::vector<std::string_view> words{"--nproc_per_node=8", "pretrain_gpt.py", "--nnodes", "-r", "x"};
  const Options o = read_options(words, {});
  EXPECT_EQ(o.program, "pretrain_gpt.py");
  EXPECT_THAT(o.arguments, ElementsAre("--nnodes", "-r", "x"));
  EXPECT_EQ(o.per_node, 8);
  const std::vector<std::string_view> dashed{"--", "--odd"};
  EXPECT_EQ(read_options(dashed, {}).program, "--odd");
}

TEST(Options, are_torchruns_in_both_spellings) {
  const Options o = options({"--nnodes",
                             "2:4",
                             "--node_rank=1",
                             "--master-addr",
                             "host",
                             "--master_port",
                             "1234",
                             "--max-restarts=3",
                             "--rdzv-id",
                             "job7",
                             "--log_dir",
                             "logs",
                             "-r",
                             "3",
                             "-t1:2,12:3",
                             "--local-ranks-filter",
                             "0,12",
                             "--rdzv_conf",
                             "join_timeout=5,last_call_timeout=0.5,keep_alive_interval=1",
                             "--shutdown-timeout",
                             "7.5",
                             "--signals-to-handle",
                             "SIGTERM,SIGUSR2",
                             "--role",
                             "trainer"});
  EXPECT_EQ(o.nodes, (Nodes{2, 4}));
  EXPECT_EQ(o.node_rank, 1);
  EXPECT_EQ(o.master, (Endpoint{"host", 1234}));
  EXPECT_EQ(o.max_restarts, 3);
  EXPECT_EQ(o.run_id, "job7");
  EXPECT_EQ(o.redirects.of(40), Streams::both);
  EXPECT_EQ(o.tee.of(0), Streams::none);
  EXPECT_EQ(o.tee.of(1), Streams::err);
  EXPECT_EQ(o.tee.of(12), Streams::both);
  EXPECT_THAT(o.console_ranks, ElementsAre(0, 12));
  EXPECT_EQ(o.patience.join, 5);
  EXPECT_EQ(o.patience.last_call, 0.5);
  EXPECT_EQ(o.grace, 7.5);
  EXPECT_THAT(o.signals, ElementsAre(SIGTERM, SIGUSR2));
}

TEST(Options, are_deepspeeds_too) {
  const Options o = options({"--hostfile", "hosts", "--include", "a@b:0", "--launcher", "OpenMPI",
                             "--launcher_args", "--bind-to none", "--ssh_port=2222"});
  EXPECT_EQ(o.hostfile, "hosts");
  EXPECT_EQ(o.include, "a@b:0");
  EXPECT_EQ(o.by, By::openmpi);
  EXPECT_EQ(o.launcher_arguments, "--bind-to none");
  EXPECT_EQ(o.ssh_port, 2222);
  EXPECT_EQ(options({"-H", "hosts"}).by, By::openmpi);
  EXPECT_EQ(options({"--num_gpus", "4", "--num_nodes", "2"}).nodes, (Nodes{2, 2}));
  EXPECT_EQ(options({"--enable_each_rank_log", "logs"}).redirects.of(3), Streams::both);
}

TEST(Options, come_from_the_environment_where_the_command_line_is_silent) {
  const Environment pod{{"PET_NNODES", "3"},          {"PET_NPROC_PER_NODE", "2"}, {"PET_NODE_RANK", "2"},
                        {"PET_MASTER_ADDR", "job-0"}, {"PET_MASTER_PORT", "77"},   {"PET_STANDALONE", "0"},
                        {"PET_MONITOR_INTERVAL", "1"}};
  const Options o = options({"--node-rank", "1"}, pod);
  EXPECT_EQ(o.nodes, (Nodes{3, 3}));
  EXPECT_EQ(o.per_node, 2);
  EXPECT_EQ(o.node_rank, 1);
  EXPECT_EQ(o.master, (Endpoint{"job-0", 77}));
  EXPECT_FALSE(o.standalone);
  EXPECT_TRUE(o.notices.empty());
}

TEST(Options, find_the_nodes_place_in_a_pod_or_a_step) {
  EXPECT_EQ(options({"--nnodes", "4"}, {{"JOB_COMPLETION_INDEX", "3"}}).node_rank, 3);
  EXPECT_EQ(options({"--nnodes", "4"}, {{"SLURM_NODEID", "2"}, {"SLURM_STEP_NUM_TASKS", "4"}}).node_rank, 2);
  EXPECT_EQ(options({"--nnodes", "4"}, {{"SLURM_NODEID", "0"}}).node_rank, -1);
  EXPECT_EQ(options({}, {{"JOB_COMPLETION_INDEX", "3"}}).node_rank, -1);
  EXPECT_EQ(
      refused({"--nnodes", "4"},
              {{"JOB_COMPLETION_INDEX", "3"}, {"SLURM_NODEID", "2"}, {"SLURM_STEP_NUM_TASKS", "4"}}),
      "usage: environment: JOB_COMPLETION_INDEX is 3 and SLURM_NODEID is 2; say --node-rank which is meant");
}

TEST(Options, of_a_platform_must_agree_about_the_nodes_place) {
  const Environment pod{{"PET_NODE_RANK", "1"}, {"JOB_COMPLETION_INDEX", "3"}};
  EXPECT_EQ(
      refused({"--nnodes", "4"}, pod),
      "usage: environment: PET_NODE_RANK is 1 and JOB_COMPLETION_INDEX is 3; say --node-rank which is meant");
  EXPECT_EQ(options({"--nnodes", "4", "--node-rank", "2"}, pod).node_rank, 2);
  EXPECT_EQ(options({"--nnodes", "4"}, {{"PET_NODE_RANK", "3"}, {"JOB_COMPLETION_INDEX", "3"}}).node_rank, 3);
}

TEST(Options, read_hosts_in_brackets_or_not_and_no_port_with_them) {
  EXPECT_EQ(read_host("h", "[fd00::1]"), "fd00::1");
  EXPECT_EQ(read_host("h", "fd00::1"), "fd00::1");
  EXPECT_EQ(read_host("h", "node0"), "node0");
  EXPECT_EQ(says([] { read_host("h", "node0:29500"); }),
            "usage: h: 'node0:29500' is a host and a port; here a host stands alone");
  EXPECT_EQ(says([] { read_host("h", "[fd00::1]:1"); }),
            "usage: h: '[fd00::1]:1' is a host and a port; here a host stands alone");
}

TEST(Options, read_endpoints_with_and_without_ports) {
  EXPECT_EQ(read_endpoint("e", "host", 29400), (Endpoint{"host", 29400}));
  EXPECT_EQ(read_endpoint("e", "host:1", 29400), (Endpoint{"host", 1}));
  EXPECT_EQ(read_endpoint("e", "[::1]:2", 29400), (Endpoint{"::1", 2}));
  EXPECT_EQ(read_endpoint("e", "fe80::1", 29400), (Endpoint{"fe80::1", 29400}));
  EXPECT_EQ(read_endpoint("e", ":3", 29400), (Endpoint{"127.0.0.1", 3}));
  EXPECT_EQ(says([] { read_endpoint("e", "host:65536", 0); }),
            "usage: e: 65536 is not a port; the last is 65535");
  EXPECT_EQ(says([] { read_endpoint("e", "[::1", 0); }), "usage: e: '[::1' has no ] for its [");
}

TEST(Options, are_never_guessed_from_a_beginning) {
  EXPECT_EQ(
      refused({"--nnode", "2"}),
      "usage: launch: --nnode is not an option, did you mean nnodes; weft help launch lists them, and the "
      "program's own follow its name");
  EXPECT_EQ(refused({"-z"}), "usage: launch: -z is not an option; weft help launch lists them");
}

TEST(Options, say_which_value_is_wrong) {
  EXPECT_EQ(refused({"--nnodes", "1:2:3"}), "usage: launch: --nnodes: '1:2:3' is neither N nor MIN:MAX");
  EXPECT_EQ(refused({"--nnodes", "3:2"}),
            "usage: launch: --nnodes: at least 3 nodes are more than at most 2");
  EXPECT_EQ(refused({"--nnodes=0"}), "usage: launch: --nnodes: 0 is less than 1");
  EXPECT_EQ(refused({"--nproc-per-node", "gpu"}),
            "usage: launch: --nproc-per-node: this build sees no gpu; write a number, cpu or auto");
  EXPECT_EQ(refused({"-r", "4"}),
            "usage: launch: -r: 4 is not 0 (neither), 1 (stdout), 2 (stderr) or 3 (both)");
  EXPECT_EQ(refused({"--tee", "0:1,0:2"}), "usage: launch: --tee: rank 0 stands there twice");
  EXPECT_EQ(refused({"--tee", "0:1,2"}), "usage: launch: --tee: '2' is not RANK:STREAMS");
  EXPECT_EQ(refused({"--rdzv-conf", "join_timeout="}),
            "usage: launch: --rdzv-conf: 'join_timeout=' is not NAME=VALUE");
  EXPECT_EQ(refused({"--rdzv-conf", "joint=1"}),
            "usage: launch: --rdzv-conf: 'joint' is not known; there are join_timeout, last_call_timeout, "
            "keep_alive_interval and keep_alive_max_attempt");
  EXPECT_EQ(refused({"--rdzv-conf", "join_timeout=nan"}),
            "usage: launch: --rdzv-conf: join_timeout: 'nan' is not a number of seconds");
  EXPECT_EQ(
      refused({"--rdzv-backend", "etcd"}),
      "usage: launch: --rdzv-backend: weft's agents meet at the first node and need no etcd; write c10d");
  EXPECT_EQ(refused({"--launcher", "pbs"}),
            "usage: launch: --launcher: 'pbs' is not weft, openmpi, slurm or ssh");
  EXPECT_EQ(
      refused({"--signals-to-handle", "SIGKILL"}),
      "usage: launch: --signals-to-handle: 'SIGKILL' is not SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1 or "
      "SIGUSR2");
  EXPECT_EQ(refused({"--processes=1"}), "usage: launch: --processes takes no value, and '1' follows it");
  EXPECT_EQ(refused({}, {{"PET_STANDALONE", "yes"}}),
            "usage: environment: PET_STANDALONE: 'yes' is neither 0 nor 1");
  EXPECT_EQ(refused({}, {{"PET_NNODES", "many"}}),
            "usage: environment: PET_NNODES: 'many' is not a whole number");
}

TEST(Options, that_contradict_each_other_are_both_named) {
  EXPECT_EQ(refused({"--hostfile", "h", "--include", "a", "--num_gpus", "2"}),
            "usage: launch: --include and --num-gpus contradict each other; leave one out");
  EXPECT_EQ(refused({"--rdzv-endpoint", "a", "--master-addr", "b"}),
            "usage: launch: --rdzv-endpoint and --master-addr contradict each other; leave one out");
  EXPECT_EQ(refused({"--exclude", "a"}), "usage: launch: --exclude needs --hostfile");
  EXPECT_EQ(refused({"--hostfile", "h", "--nnodes", "2"}),
            "usage: launch: --nnodes and --hostfile contradict each other; leave one out");
  EXPECT_EQ(refused({"--nnodes", "2", "--node-rank", "2"}),
            "usage: launch: --node-rank 2 is not below the 2 of --nnodes");
  EXPECT_EQ(
      refused({"--launcher", "openmpi", "--nnodes", "1:2"}),
      "usage: launch: MIN:MAX nodes need an agent on each of them; mpirun and srun start a fixed number");
}

TEST(Options, that_have_no_effect_are_said_and_those_not_taken_are_refused) {
  EXPECT_THAT(
      options({"--monitor-interval", "5", "--rdzv-conf", "read_timeout=1,store_type=file"}).notices,
      ElementsAre(
          "no effect here: launch: --monitor-interval (a worker's end is an event here, nothing polls)",
          "no effect here: launch: --rdzv-conf read_timeout (weft's agents ask for no such thing)",
          "no effect here: launch: --rdzv-conf store_type (weft's agents ask for no such thing)"));
  EXPECT_EQ(refused({"--numa-binding", "node"}),
            "usage: launch: --numa-binding: weft does not bind to memory nodes yet; use numactl");
}

TEST(Options, need_a_program) {
  EXPECT_EQ(
      says([] {
        read_options(std::vector<std::string_view>{"--nnodes", "2"}, {});
      }),
      "usage: launch: name a program: weft launch --nproc-per-node 2 train gpt …; weft help launch shows "
      "examples");
  EXPECT_EQ(says([] { read_options(std::vector<std::string_view>{"--nnodes"}, {}); }),
            "usage: launch: --nnodes needs a value: N|MIN:MAX");
}

TEST(Options, three_places_to_meet_at_and_not_two) {
  const Options o = options({"--nnodes", "3", "--rdzv-endpoint", "a:1,b,[::1]:3"});
  EXPECT_THAT(o.places, ElementsAre(Endpoint{"a", 1}, Endpoint{"b", 29400}, Endpoint{"::1", 3}));
  EXPECT_EQ(o.master, (Endpoint{"a", 1}));
  EXPECT_EQ(refused({"--rdzv-endpoint", "a,b"}),
            "usage: launch: --rdzv-endpoint: of two places neither can outvote the other where one is lost; "
            "name one, or three");
  EXPECT_EQ(refused({"--rdzv-endpoint", "a,b,a"}),
            "usage: launch: --rdzv-endpoint: a port 29400 is named twice");
}

TEST(Options, refuse_numbers_that_nobody_means_by_name) {
  // A node that the rendezvous numbers, a free port, no restart, at once or for ever, a tenth of a second or
  // never, a window as short as steps let it be or never over.
  const std::set<std::string> mean_something{
      "--node-rank=0",        "--node-rank=-1",
      "--master-port=0",      "--max-restarts=0",
      "--hang-limit=0",       "--hang-limit=1000000000000000000",
      "--slow-window=0",      "--slow-window=1000000000000000000",
      "--shutdown-timeout=0", "--shutdown-timeout=1000000000000000000"};
  int sent = 0;
  for (const OptionRow& row : option_rows()) {
    const std::string value(row.value);
    if (!value.starts_with("SECONDS") && (!value.starts_with("N") || value.starts_with("NAME"))) continue;
    for (const char* odd : {"0", "-1", "NaN", "inf", "1000000000000000000", "word"}) {
      const std::string word = "--" + std::string(row.name) + "=" + odd;
      if (mean_something.contains(word)) {
        EXPECT_NO_THROW(options({word})) << word;
        continue;
      }
      EXPECT_THAT(refused({word}), testing::HasSubstr("--" + std::string(row.name))) << word;
      ++sent;
    }
  }
  EXPECT_GT(sent, 50);
}

// Its own options are what it may name: a setting of training is a field, and spelled by who reads the flags.
TEST(Options, are_all_that_messages_name) {
  std::set<std::string> known{"take-a-seat"};  // between launchers, and nobody's to write
  for (const OptionRow& row : option_rows()) known.emplace(row.name);
  const std::regex named("[ \"]--([a-z][a-z-]+)[ \",]");
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(WEFT_SOURCE_DIR "/weft/launch")) {
    const std::string file = entry.path().filename();
    if (entry.path().extension() != ".cpp" || file == "elsewhere.cpp" || file == "options_table.cpp")
      continue;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);)
      for (auto at = std::sregex_iterator(line.begin(), line.end(), named); at != std::sregex_iterator();
           ++at, ++found)
        EXPECT_TRUE(known.contains((*at)[1])) << file << " names --" << (*at)[1];
  }
  EXPECT_GT(found, 15);
}
