// One table of launchers' names, read in one order, compared with each other.
#include "weft/launch/seat.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/format.h"

namespace weft::launch {
namespace {

/// Names that may be "" where the launcher has none.
struct Names {
  const char *rank, *world, *local_rank, *local_world;
  bool mpi, slurm;
};
constexpr std::array known{
    Names{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
          "OMPI_COMM_WORLD_LOCAL_SIZE", true, false},
    Names{"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
          "MV2_COMM_WORLD_LOCAL_SIZE", true, false},
    Names{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", true, false},
    Names{"PALS_RANKID", "PMI_SIZE", "PALS_LOCAL_RANKID", "", true, false},
    // A step's size: SLURM_NTASKS is the allocation's, and set in the batch script too.
    Names{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "", true, true},
    Names{"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", false, false}};

struct Said {
  Names names;
  std::optional<int> rank, world, local_rank, local_world;
};

std::optional<int> number(const Environment& environment, const char* name, int least) {
  const std::string_view word = value_of(environment, name);
  if (word.empty()) return std::nullopt;
  return whole_number(text("environment: ", name), word, least);
}

Said read(const Environment& environment, const Names& names) {
  Said said{names, number(environment, names.rank, 0), number(environment, names.world, 1), {}, {}};
  said.local_rank = number(environment, names.local_rank, 0);
  said.local_world = number(environment, names.local_world, 1);
  if (said.rank && said.world && *said.rank >= *said.world)
    fail(Kind::usage, "environment: ", names.rank, " ", *said.rank, " is not below ", names.world, " ",
         *said.world);
  return said;
}

/// A launcher's own have both; torchrun's WORLD_SIZE may stand alone, for whoever plans.
bool counts(const Said& said) {
  if (!said.names.mpi) return said.world.has_value() || said.rank.has_value();
  return said.world && said.rank;
}

struct Pair {
  const char *one_name, *other_name;
  std::optional<int> one, other;
};

void must_agree(const Said& one, const Said& other) {
  const std::array pairs{
      Pair{one.names.rank, other.names.rank, one.rank, other.rank},
      Pair{one.names.world, other.names.world, one.world, other.world},
      Pair{one.names.local_rank, other.names.local_rank, one.local_rank, other.local_rank},
      Pair{one.names.local_world, other.names.local_world, one.local_world, other.local_world}};
  for (const Pair& pair : pairs)
    if (pair.one && pair.other && *pair.one != *pair.other)
      fail(Kind::usage, "environment: ", pair.one_name, " is ", *pair.one, " and ", pair.other_name, " is ",
           *pair.other, "; unset what the other launcher left");
}

std::vector<Said> all_said(const Environment& environment) {
  std::vector<Said> out;
  for (const Names& names : known) {
    if (names.slurm && !out.empty()) continue;  // mpirun in an allocation
    Said said = read(environment, names);
    if (counts(said)) out.push_back(said);
  }
  // Alone it would make this process one of nobody knows how many, which then trains by itself.
  if (out.size() == 1 && out[0].rank && !out[0].world)
    fail(Kind::usage, "environment: ", out[0].names.rank, " is ", *out[0].rank, " and ", out[0].names.world,
         " is not set; set both, as torchrun does, or unset ", out[0].names.rank);
  return out;
}

void forget(Environment& environment, const Names& names) {
  for (const char* name : {names.rank, names.world, names.local_rank, names.local_world})
    environment.erase(name);
}

}  // namespace

int tasks_of_slurm_here(const Environment& environment) {
  constexpr const char* name = "SLURM_STEP_TASKS_PER_NODE";
  const std::string_view all = value_of(environment, name);
  const std::optional<int> node = number(environment, "SLURM_NODEID", 0);
  if (all.empty() || !node) return 0;
  std::int64_t first = 0;  // node of the part at hand
  for (const std::string_view part : split(all, ',')) {
    const auto bracket = part.find("(x");
    const bool repeated = bracket != std::string_view::npos && part.ends_with(')');
    const std::string who = text("environment: ", name);
    const int tasks = whole_number(who, part.substr(0, bracket), 1);
    const int nodes =
        repeated ? whole_number(who, part.substr(bracket + 2, part.size() - bracket - 3), 1) : 1;
    if (bracket != std::string_view::npos && !repeated)
      fail(Kind::usage, who, ": '", all, "' is not TASKS(xNODES),…, as Slurm sets it");
    if (*node < first + nodes) return tasks;
    first += nodes;
  }
  return 0;
}

Seat seat_in(const Environment& environment) {
  const std::vector<Said> all = all_said(environment);
  Seat seat;
  for (const Said& said : all) {
    for (const Said& other : all) must_agree(said, other);
    if (seat.world > 0) continue;
    seat.world = said.world.value_or(0);
    seat.rank = said.rank.value_or(0);
    seat.local_rank = said.local_rank.value_or(0);
    seat.on_this_machine = said.local_world.value_or(1);
    if (said.names.slurm) seat.on_this_machine = std::max(1, tasks_of_slurm_here(environment));
    // One process under mpirun is like one without: its ranks may be threads.
    seat.mpi = said.names.mpi && seat.world > 1;
    if (said.rank) seat.said_by = said.names.rank;
  }
  return seat;
}

void forget_launcher(Environment& environment) {
  for (const Names& names : known)
    if (names.mpi) forget(environment, names);
}

void forget_seat(Environment& environment) {
  for (const Names& names : known) forget(environment, names);
}

}  // namespace weft::launch
