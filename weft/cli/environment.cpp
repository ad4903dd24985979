// Reads what launchers set: MPI's own names first, then WORLD_SIZE and RANK.
#include "weft/cli/environment.h"

#include <array>
#include <cstdlib>
#include <string>

#include "weft/base/error.h"
#include "weft/base/fields.h"

namespace weft::cli {
namespace {

int number(const char* name, int otherwise) {
  const char* set = std::getenv(name);
  if (set == nullptr || *set == '\0') return otherwise;
  int value = 0;
  try {
    read_word(set, value);
  } catch (const Error& e) {
    fail(Kind::usage, "environment: ", name, ": ", e.what());
  }
  return value;
}

std::string word(const char* name) {
  const char* set = std::getenv(name);
  return set != nullptr ? set : "";
}

struct Names {
  const char *world, *rank, *local;
};
constexpr std::array mpi_names{
    Names{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    Names{"PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS"}};

/// One process under mpirun is like one without: its ranks may be threads.
Launched launched_by_mpi() {
  for (const Names& names : mpi_names) {
    const int world = number(names.world, 0);
    if (world > 1) return {world, number(names.rank, 0), number(names.local, 1), true, {}};
  }
  return {};
}

}  // namespace

Launched launched_by_environment() {
  const Launched mpi = launched_by_mpi();
  const Launched out{number("WORLD_SIZE", mpi.world), number("RANK", mpi.rank), mpi.on_this_machine, mpi.mpi,
                     word("SLURM_JOB_ID")};
  if (out.world < 0) fail(Kind::usage, "environment: WORLD_SIZE ", out.world, " is not at least 1");
  if (out.rank < 0 || (out.world > 0 && out.rank >= out.world))
    fail(Kind::usage, "environment: RANK ", out.rank, " is not below WORLD_SIZE ", out.world);
  if (mpi.mpi && (out.world != mpi.world || out.rank != mpi.rank))
    fail(Kind::usage, "environment: MPI says rank ", mpi.rank, " of ", mpi.world,
         ", RANK and WORLD_SIZE say ", out.rank, " of ", out.world, "; unset what the other launcher left");
  return out;
}

}  // namespace weft::cli
