// What a launcher's environment variables say to training.
#pragma once

#include <string>

namespace weft::cli {

struct Launched {
  int world = 0;  // 0: no launcher
  int rank = 0;
  int on_this_machine = 1;     // ranks that share it
  bool mpi = false;            // every rank is a process that mpirun or srun started
  std::string rank_from = {};  // the variable that gave the rank
  std::string job = {};        // Slurm's number, for progress.txt
  bool supervised = false;     // by weft launch, which leaves nothing behind
};
/// What mpirun or srun says of more than one rank, else WORLD_SIZE and RANK, as torchrun sets them. Two
/// launchers that disagree are an error.
Launched launched_by_environment();

/// A process that torchrun started has peers that it cannot reach without MPI: says so before it trains
/// alone.
void must_speak_with_peers(const Launched& launched);

}  // namespace weft::cli
