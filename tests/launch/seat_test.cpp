#include "weft/launch/seat.h"

#include <gtest/gtest.h>

#include "tests/support/says.h"

using namespace weft;
using namespace weft::launch;
using weft::support::says;

namespace {

std::string refused(const Environment& environment) {
  return says([&] { seat_in(environment); });
}

}  // namespace

TEST(Seat, is_nobodys_without_a_launcher) {
  EXPECT_EQ(seat_in({}).world, 0);
  EXPECT_EQ(seat_in({{"PATH", "/bin"}, {"RANK", ""}}).said_by, "");
}

TEST(Seat, is_found_under_every_launchers_names) {
  const auto expect = [](const Environment& environment, bool mpi) {
    const Seat seat = seat_in(environment);
    EXPECT_EQ(seat.world, 8);
    EXPECT_EQ(seat.rank, 5);
    EXPECT_EQ(seat.local_rank, 1);
    EXPECT_EQ(seat.mpi, mpi);
  };
  expect({{"OMPI_COMM_WORLD_SIZE", "8"}, {"OMPI_COMM_WORLD_RANK", "5"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}},
         true);
  expect({{"MV2_COMM_WORLD_SIZE", "8"}, {"MV2_COMM_WORLD_RANK", "5"}, {"MV2_COMM_WORLD_LOCAL_RANK", "1"}},
         true);
  expect({{"PMI_SIZE", "8"}, {"PMI_RANK", "5"}, {"MPI_LOCALRANKID", "1"}}, true);
  expect({{"PMI_SIZE", "8"}, {"PALS_RANKID", "5"}, {"PALS_LOCAL_RANKID", "1"}}, true);
  expect({{"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_PROCID", "5"}, {"SLURM_LOCALID", "1"}}, true);
  expect({{"WORLD_SIZE", "8"}, {"RANK", "5"}, {"LOCAL_RANK", "1"}}, false);
}

TEST(Seat, knows_how_many_ranks_share_the_machine) {
  EXPECT_EQ(
      seat_in(
          {{"OMPI_COMM_WORLD_SIZE", "8"}, {"OMPI_COMM_WORLD_RANK", "5"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}})
          .on_this_machine,
      4);
}

TEST(Seat, is_one_ranks_own_where_mpirun_started_one) {
  const Seat seat = seat_in({{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}});
  EXPECT_FALSE(seat.mpi);
  EXPECT_EQ(seat.world, 1);
}

TEST(Seat, takes_a_world_size_that_stands_alone) {
  EXPECT_EQ(seat_in({{"WORLD_SIZE", "8"}}).world, 8);
  EXPECT_EQ(seat_in({{"WORLD_SIZE", "8"}}).said_by, "");
}

TEST(Seat, agrees_with_a_second_launcher_that_says_the_same) {
  EXPECT_EQ(seat_in({{"PMI_SIZE", "4"}, {"PMI_RANK", "3"}, {"WORLD_SIZE", "4"}, {"RANK", "3"}}).rank, 3);
}

TEST(Seat, leaves_slurms_allocation_alone_under_mpirun_and_in_a_batch_script) {
  EXPECT_EQ(seat_in({{"OMPI_COMM_WORLD_SIZE", "4"},
                     {"OMPI_COMM_WORLD_RANK", "3"},
                     {"SLURM_STEP_NUM_TASKS", "2"},
                     {"SLURM_PROCID", "1"}})
                .rank,
            3);
  EXPECT_EQ(seat_in({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}}).world, 0);
}

TEST(Seat, names_both_variables_that_disagree) {
  EXPECT_EQ(refused({{"PMI_SIZE", "4"}, {"PMI_RANK", "0"}, {"WORLD_SIZE", "8"}}),
            "usage: environment: PMI_SIZE is 4 and WORLD_SIZE is 8; unset what the other launcher left");
  EXPECT_EQ(
      refused({{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "2"}, {"WORLD_SIZE", "4"}, {"RANK", "1"}}),
      "usage: environment: SLURM_PROCID is 2 and RANK is 1; unset what the other launcher left");
  EXPECT_EQ(refused({{"PMI_SIZE", "4"},
                     {"PMI_RANK", "0"},
                     {"MPI_LOCALRANKID", "0"},
                     {"PALS_RANKID", "0"},
                     {"PALS_LOCAL_RANKID", "1"}}),
            "usage: environment: MPI_LOCALRANKID is 0 and PALS_LOCAL_RANKID is 1; unset what the other "
            "launcher left");
}

TEST(Seat, refuses_a_rank_of_nobody_knows_how_many) {
  EXPECT_EQ(
      refused({{"RANK", "3"}}),
      "usage: environment: RANK is 3 and WORLD_SIZE is not set; set both, as torchrun does, or unset RANK");
  EXPECT_EQ(seat_in({{"RANK", "3"}, {"PMI_SIZE", "4"}, {"PMI_RANK", "3"}}).world, 4);
}

TEST(Seat, refuses_what_is_no_rank) {
  EXPECT_EQ(refused({{"WORLD_SIZE", "four"}}),
            "usage: environment: WORLD_SIZE: 'four' is not a whole number");
  EXPECT_EQ(refused({{"WORLD_SIZE", "0"}}), "usage: environment: WORLD_SIZE: 0 is less than 1");
  EXPECT_EQ(refused({{"WORLD_SIZE", "4"}, {"RANK", "-1"}}), "usage: environment: RANK: -1 is less than 0");
  EXPECT_EQ(refused({{"WORLD_SIZE", "4"}, {"RANK", "4"}}),
            "usage: environment: RANK 4 is not below WORLD_SIZE 4");
  EXPECT_EQ(refused({{"WORLD_SIZE", "99999999999"}}),
            "usage: environment: WORLD_SIZE: '99999999999' is larger than any number of ranks");
}

TEST(Seat, of_an_outer_launcher_is_forgotten) {
  const Environment outer{{"OMPI_COMM_WORLD_RANK", "1"},
                          {"OMPI_COMM_WORLD_SIZE", "2"},
                          {"MV2_COMM_WORLD_RANK", "1"},
                          {"MV2_COMM_WORLD_SIZE", "2"},
                          {"PMI_RANK", "1"},
                          {"PMI_SIZE", "2"},
                          {"PALS_RANKID", "1"},
                          {"PALS_LOCAL_RANKID", "0"},
                          {"SLURM_PROCID", "1"},
                          {"SLURM_STEP_NUM_TASKS", "2"},
                          {"MPI_LOCALRANKID", "0"},
                          {"SLURM_LOCALID", "0"}};
  Environment worker = outer;
  worker.insert({{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}});
  Environment thread = worker;
  EXPECT_EQ(
      refused(worker),
      "usage: environment: OMPI_COMM_WORLD_RANK is 1 and RANK is 2; unset what the other launcher left");
  forget_launcher(worker);
  EXPECT_EQ(seat_in(worker).said_by, "RANK");
  EXPECT_FALSE(seat_in(worker).mpi);
  forget_seat(thread);
  EXPECT_TRUE(thread.empty());
}

TEST(Seat, reads_slurms_list_of_tasks_for_its_own_node) {
  const auto here = [](const char* list, const char* node) {
    return tasks_of_slurm_here({{"SLURM_STEP_TASKS_PER_NODE", list}, {"SLURM_NODEID", node}});
  };
  EXPECT_EQ(here("2(x3),1", "2"), 2);
  EXPECT_EQ(here("2(x3),1", "3"), 1);
  EXPECT_EQ(here("2(x3),1", "4"), 0);
  EXPECT_EQ(here("", "0"), 0);
  EXPECT_EQ(seat_in({{"SLURM_STEP_NUM_TASKS", "8"},
                     {"SLURM_PROCID", "5"},
                     {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"},
                     {"SLURM_NODEID", "1"}})
                .on_this_machine,
            4);
  EXPECT_EQ(says([&] { here("2(x3", "5"); }),
            "usage: environment: SLURM_STEP_TASKS_PER_NODE: '2(x3' is not TASKS(xNODES),…, as Slurm sets it");
  EXPECT_EQ(says([&] { here("2(xx)", "5"); }),
            "usage: environment: SLURM_STEP_TASKS_PER_NODE: 'x' is not a whole number");
}
