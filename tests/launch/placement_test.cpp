#include "weft/launch/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/says.h"
#include "weft/base/error.h"

using namespace weft::launch;
using testing::ElementsAre;
using weft::text;
using weft::support::says;

namespace {

const Placement two_hosts{.address = "a",
                          .port = 61234,
                          .restarts = 1,
                          .max_restarts = 3,
                          .run_id = "job 7",
                          .role = "trainer",
                          .slots = {2, 4}};

std::vector<std::string_view> views(const std::vector<std::string>& words) {
  return {words.begin(), words.end()};
}

std::string found(const Placement& placement, Environment environment, const char* name) {
  apply(placement, environment);
  return environment[name];
}

}  // namespace

TEST(Placement, travels_as_words) {
  EXPECT_THAT(to_words(two_hosts), ElementsAre("a", "61234", "1", "3", "job 7", "trainer", "2,4"));
  EXPECT_EQ(to_words(read_placement(views(to_words(two_hosts)))), to_words(two_hosts));
  EXPECT_THAT(to_words({.run_id = "none"}), ElementsAre("-", "0", "0", "0", "none", "-", "-"));
  EXPECT_EQ(read_placement(views(to_words({}))).address, "");
  EXPECT_EQ(
      says([] { read_placement({}); }),
      "usage: launch: --take-a-seat is weft launch's own word to the processes that mpirun and srun start "
      "for it");
}

TEST(Placement, gives_mpiruns_processes_torchruns_contract) {
  const Environment third{{"OMPI_COMM_WORLD_RANK", "3"},
                          {"OMPI_COMM_WORLD_SIZE", "6"},
                          {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                          {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}};
  const std::vector<std::pair<const char*, const char*>> contract{{"RANK", "3"},
                                                                  {"LOCAL_RANK", "1"},
                                                                  {"WORLD_SIZE", "6"},
                                                                  {"LOCAL_WORLD_SIZE", "4"},
                                                                  {"GROUP_RANK", "1"},
                                                                  {"GROUP_WORLD_SIZE", "2"},
                                                                  {"ROLE_RANK", "3"},
                                                                  {"ROLE_NAME", "trainer"},
                                                                  {"ROLE_WORLD_SIZE", "6"},
                                                                  {"MASTER_ADDR", "a"},
                                                                  {"MASTER_PORT", "61234"},
                                                                  {"TORCHELASTIC_RESTART_COUNT", "1"},
                                                                  {"TORCHELASTIC_MAX_RESTARTS", "3"},
                                                                  {"TORCHELASTIC_RUN_ID", "job 7"},
                                                                  {"OMP_NUM_THREADS", "1"}};
  for (const auto& [name, value] : contract) EXPECT_EQ(found(two_hosts, third, name), value) << name;
}

TEST(Placement, finds_the_first_host_and_the_node_in_a_slurm_step) {
  const Environment task{{"SLURM_PROCID", "1"},
                         {"SLURM_STEP_NUM_TASKS", "2"},
                         {"SLURM_LOCALID", "0"},
                         {"SLURM_NODEID", "1"},
                         {"SLURM_STEP_NUM_NODES", "2"},
                         {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                         {"SLURM_STEP_NODELIST", "gpu[03,07]"},
                         {"SLURM_JOB_NODELIST", "gpu[01-09]"}};
  EXPECT_EQ(found({}, task, "MASTER_ADDR"), "gpu03");
  EXPECT_EQ(found({}, task, "GROUP_RANK"), "1");
  EXPECT_EQ(found({}, task, "GROUP_WORLD_SIZE"), "2");
  EXPECT_EQ(found({}, task, "LOCAL_WORLD_SIZE"), "1");
}

TEST(Placement, is_refused_where_nobody_gave_a_seat) {
  EXPECT_EQ(
      says([] {
        found({}, {{"PATH", "/"}}, "RANK");
      }),
      "usage: launch: --take-a-seat: neither mpirun nor srun says which rank this is; its variables are "
      "not here");
}

TEST(Placement, knows_where_a_rank_is_that_another_launcher_put_there) {
  const Seating two{.hosts = {{"a", {0, 1}}, {"b", {0, 1, 2}}}};
  const auto seen = [](const Whereabouts& w) { return text(w.node, ".", w.local_rank, "@", w.host); };
  EXPECT_EQ(seen(whereabouts_of(1, "", two)), "0.1@a");
  EXPECT_EQ(seen(whereabouts_of(4, "", two)), "1.2@b");
  EXPECT_EQ(seen(whereabouts_of(4, "b.cluster", two)), "1.2@b.cluster");
  EXPECT_EQ(seen(whereabouts_of(4, "a", two)), "0.-1@a") << "not in order then";
  EXPECT_EQ(seen(whereabouts_of(9, "", two)), "-1.-1@");
  const Seating any{.hosts = two.hosts, .in_order = false};
  EXPECT_EQ(seen(whereabouts_of(4, "", any)), "-1.-1@");
  EXPECT_EQ(seen(whereabouts_of(4, "b", any)), "1.-1@b");
  EXPECT_EQ(seen(whereabouts_of(5, "gpu07", {.per_node = 4})), "1.1@gpu07");
  EXPECT_EQ(seen(whereabouts_of(5, "", {})), "-1.-1@");
}

TEST(Placement, reads_the_first_of_slurms_lists) {
  EXPECT_EQ(first_host("alpha"), "alpha");
  EXPECT_EQ(first_host("alpha,beta"), "alpha");
  EXPECT_EQ(first_host("gpu[03-05,7],x1"), "gpu03");
  EXPECT_EQ(first_host("rack[1-2]node[04-07]"), "rack1node04");
  EXPECT_EQ(first_host("gpu[1"), "gpu1");
  EXPECT_EQ(first_host(""), "");
}
