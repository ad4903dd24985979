// What a node runs in a round: threads in one weft, weft's processes under mpirun or srun, or any program's
// processes.
#pragma once

#include "weft/cli/launch_program.h"
#include "weft/cli/verb.h"
#include "weft/launch/agent.h"
#include "weft/launch/hostfile.h"
#include "weft/launch/loop.h"
#include "weft/launch/port.h"

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
  launch::ReservedPort own_port;    // of a program that listens itself, should its first worker be here
  Descriptor ward;                  // where ranks on other machines say what they do
  std::string ward_token;
  Descriptor lives;  // where ranks of mpirun's on this machine hold a line
  std::string lives_name;

  /// By another launcher, which then makes the processes.
  bool elsewhere() const;
  /// Ranks of our own as processes that we start, and that speak TCP.
  bool by_tcp() const;
  /// Ranks of our own as threads of one process.
  bool as_threads() const;
  bool watched() const { return program.trains && options.watches; }
  /// Only ranks of this machine share its memory; others tell.
  bool on_other_machines() const;
  /// Ranks of the whole job, if every node brings as many as this one.
  int world() const;
};

/// Reads hostfile and filters, makes the folder.
Launch prepared(launch::Options options);
launch::Agent::Work work_of(const Launch& launch);
/// A port of this node for the first worker's use, should it be here; 0 where none is needed.
int port_of(const Launch& launch);
/// A program's word with "${local_rank}" replaced.
std::string with_local_rank(std::string word, const std::string& rank);
/// What a process that mpirun or srun started does first, where the program is not weft's training.
int take_a_seat(Args words);
/// Processes that this node counts for.
int slots_of(const Launch& launch);

}  // namespace weft::cli
