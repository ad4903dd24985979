// The seat that a launcher left in the environment, and the job's number.
#include "weft/cli/environment.h"

#include "weft/base/error.h"
#include "weft/launch/seat.h"

namespace weft::cli {

Launched launched_by_environment() {
  const launch::Environment environment = launch::environment_of_this_process();
  launch::Seat seat = launch::seat_in(environment);
  const auto said = [&](const char* name) { return std::string(launch::value_of(environment, name)); };
  const bool slurms = seat.said_by == "SLURM_PROCID";
  const bool tcp = !seat.mpi && seat.world > 1 && seat.said_by == "RANK" && !said("MASTER_ADDR").empty() &&
                   !said("MASTER_PORT").empty();
  TcpSeat meeting;
  if (tcp) {
    const std::string listener = said("WEFT_LISTENER");
    meeting = {.rank = seat.rank,
               .world = seat.world,
               .host = said("MASTER_ADDR"),
               .port = launch::whole_number("environment: MASTER_PORT", said("MASTER_PORT"), 0),
               .listener = listener.empty() || seat.rank > 0
                               ? -1
                               : launch::whole_number("environment: WEFT_LISTENER", listener, 0),
               .job = text(said("TORCHELASTIC_RUN_ID"), ".", said("TORCHELASTIC_RESTART_COUNT"), ".",
                           said("WEFT_ROUND"))};
  }
  return {.world = seat.world,
          .rank = seat.rank,
          .on_this_machine = seat.on_this_machine,
          .local_rank = seat.local_rank,
          .mpi = seat.mpi,
          .tcp = tcp,
          .meeting = std::move(meeting),
          .node = slurms && !said("SLURM_NODEID").empty()
                      ? launch::whole_number("environment: SLURM_NODEID", said("SLURM_NODEID"), 0)
                      : -1,
          .host = slurms && !said("SLURMD_NODENAME").empty() ? said("SLURMD_NODENAME") : launch::host_name(),
          .rank_from = std::move(seat.said_by),
          .job = std::string(launch::value_of(environment, "SLURM_JOB_ID")),
          .supervised = !said("WEFT_SUPERVISED").empty(),
          .pulse = said("WEFT_PULSE"),
          .watcher = said("WEFT_WATCHER"),
          .lifeline = said("WEFT_LIFELINE"),
          .round = said("WEFT_ROUND").empty()
                       ? 0
                       : launch::whole_number("environment: WEFT_ROUND", said("WEFT_ROUND"), 0),
          .faults = said("WEFT_INJECT"),
          .error_file = said("TORCHELASTIC_ERROR_FILE")};
}

void must_speak_with_peers(const Launched& launched) {
  if (launched.processes() || launched.world <= 1 || launched.rank_from.empty()) return;
  fail(Kind::usage, "train: ", launched.rank_from, " says that this is one of ", launched.world,
       " processes, and MASTER_ADDR and MASTER_PORT do not say where they meet; start them with weft launch, "
       "mpirun, srun or torchrun, or unset ",
       launched.rank_from, " for ranks as threads");
}

}  // namespace weft::cli
