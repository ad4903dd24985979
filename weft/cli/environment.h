// What a launcher's environment variables say. Read here and in launch/ only.
#pragma once

#include <optional>
#include <string>

namespace weft::cli {

struct Launched {
  int world = 0;  // 0: no launcher
  int rank = 0;
  int on_this_machine = 1;  // ranks that share it
  bool mpi = false;         // every rank is a process that mpirun or srun started
  std::string job = {};     // Slurm's number, for progress.txt
};
/// What mpirun (Open MPI's or Hydra's) or srun says of more than one rank, else WORLD_SIZE and RANK, as
/// torchrun sets them. Two launchers that disagree are an error.
Launched launched_by_environment();

}  // namespace weft::cli
