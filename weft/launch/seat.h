// Which rank this process is, by what its launcher left in the environment.
#pragma once

#include <string>

#include "weft/launch/environment.h"

namespace weft::launch {

struct Seat {
  int world = 0;  // 0: no launcher said
  int rank = 0;
  int local_rank = 0;       // among those on this machine
  int on_this_machine = 1;  // ranks that share it
  bool mpi = false;         // a launcher that MPI's library can ask for its peers
  std::string said_by;      // the variable that gave the rank, for messages
};

/// Tasks of a Slurm step on this process's node, of "2(x3),1" and the node's number; 0 where that is not
/// said. Fails with Kind::usage on anything else.
int tasks_of_slurm_here(const Environment& environment);

/// Reads Open MPI's, Hydra's (MPICH, Intel), PALS's, MVAPICH's and a Slurm step's variables, and WORLD_SIZE,
/// RANK and LOCAL_RANK as torchrun sets them. Under mpirun Slurm's describe the allocation and are left
/// alone; all others that are set must agree, or the error names both variables. One process alone is no
/// launcher.
Seat seat_in(const Environment& environment);

/// Takes out what an outer launcher says of this process: its children are other ones. Not torchrun's
/// contract, which is theirs.
void forget_launcher(Environment& environment);
/// And that too, for those who find their seats by themselves.
void forget_seat(Environment& environment);

}  // namespace weft::launch
