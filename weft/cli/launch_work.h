// What a node runs in a round: threads in one weft, weft's processes under mpirun or srun, or any program's
// processes.
#pragma once

#include "weft/cli/launch_program.h"
#include "weft/launch/agent.h"
#include "weft/launch/hostfile.h"
#include "weft/launch/loop.h"

namespace weft::cli {

struct Launch {
  launch::Options options;
  launch::Environment environment;
  Program program;
  std::vector<launch::Host> hosts;  // of the hostfile, filtered; empty: none
  std::filesystem::path weft;       // this program
  std::filesystem::path folder;     // of this launch: logs, hostfile
  bool made_folder = false;         // nobody asked for it: gone in the end
  int port = 0;                     // that workers are told
  Descriptor door;                  // where rank 0 of our own listens, if it is here
};

/// Reads hostfile and filters, makes the folder.
Launch prepared(launch::Options options);
launch::Agent::Work work_of(const Launch& launch);
/// A port of this node for the first worker's use, should it be here; 0 where none is needed.
int port_of(const Launch& launch);
/// Processes that this node counts for.
int slots_of(const Launch& launch);

}  // namespace weft::cli
