// What a launcher's environment variables say to training.
#pragma once

#include <string>

#include "weft/comm/tcp.h"

namespace weft::cli {

struct Launched {
  int world = 0;  // 0: no launcher
  int rank = 0;
  int on_this_machine = 1;  // ranks that share it
  int local_rank = 0;
  bool mpi = false;  // every rank is a process that mpirun or srun started
  bool tcp = false;  // every rank is a process, and they meet where `meeting` says
  TcpSeat meeting = {};
  int node = -1;                // of the step; -1: nobody said
  std::string host = {};        // as its launcher calls this machine
  std::string rank_from = {};   // the variable that gave the rank
  std::string job = {};         // Slurm's number, for progress.txt
  bool supervised = false;      // by weft launch, which leaves nothing behind
  std::string pulse = {};       // the board that it watches; "": none
  std::string watcher = {};     // a launcher on another machine; "": none
  std::string lifeline = {};    // where it sees that this process is gone; "": nowhere
  int round = 0;                // of its starts
  std::string faults = {};      // of --inject; "": none
  std::string error_file = {};  // torchrun's, to say in why this process fails; "": none

  bool processes() const { return mpi || tcp; }
};
/// What mpirun or srun says of more than one rank, else WORLD_SIZE and RANK, as torchrun sets them. Two
/// launchers that disagree are an error.
Launched launched_by_environment();

/// A process that is told its rank and not where the others are would train alone: says so.
void must_speak_with_peers(const Launched& launched);

}  // namespace weft::cli
