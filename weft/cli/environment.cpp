// The seat that a launcher left in the environment, and the job's number.
#include "weft/cli/environment.h"

#include "weft/base/error.h"
#include "weft/launch/seat.h"

namespace weft::cli {

Launched launched_by_environment() {
  const launch::Environment environment = launch::environment_of_this_process();
  launch::Seat seat = launch::seat_in(environment);
  return {.world = seat.world,
          .rank = seat.rank,
          .on_this_machine = seat.on_this_machine,
          .mpi = seat.mpi,
          .rank_from = std::move(seat.said_by),
          .job = std::string(launch::value_of(environment, "SLURM_JOB_ID")),
          .supervised = !launch::value_of(environment, "WEFT_SUPERVISED").empty()};
}

void must_speak_with_peers(const Launched& launched) {
  if (launched.mpi || launched.world <= 1 || launched.rank_from.empty()) return;
  fail(Kind::usage, "train: ", launched.rank_from, " says that this is one of ", launched.world,
       " processes, and weft's processes speak through MPI; start them with weft launch, mpirun or srun, or "
       "unset ",
       launched.rank_from, " for ranks as threads");
}

}  // namespace weft::cli
