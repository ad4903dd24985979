// Does a run fit into this machine: asked before any of it is taken.
#pragma once

#include <string>

#include "weft/plan/free_memory.h"
#include "weft/plan/plan.h"

namespace weft {

/// The ranks that share a memory, by number: this machine's, or a GPU's.
struct RanksHere {
  int first = 0, last = 0;
  bool one_process = true;  // threads; else a process each
  int every = 1;            // of those between, each so manyth
  std::string gpu = {};     // "cuda:0", whose memory has nothing of the process; empty: the machine's

  int count() const { return (last - first) / every + 1; }
};

/// What these ranks need, with what their processes take of the machine.
std::int64_t bytes_here(const Plan& plan, const ParallelConfig& parallel, const RanksHere& here);
/// The same where all tokens go to the experts of one rank; without experts that travel, the same number.
std::int64_t bytes_here_if_crowded(const Plan& plan, const ParallelConfig& parallel, const RanksHere& here);
/// "where all tokens go to the experts of one rank, 3.1 GiB is needed": of a plan that has room while loads
/// are even, and none then; "" of others.
std::string crowded_out(const Plan& plan, const ParallelConfig& parallel, const RanksHere& here,
                        const FreeMemory& free);

/// What these ranks put on this machine's disk.
std::int64_t disk_here(const Plan& plan, const ParallelConfig& parallel, const RanksHere& here);

/// "--micro-batch-size 2 would need 12.1 GiB": the smallest change with which a run fits that does not.
std::string what_would_fit(const TrainConfig& config, const RanksHere& here, const FreeMemory& free,
                           const OpenCounter& open);

/// "4 ranks need 41.2 GiB here (…), and the machine has 13.5 GiB left: --micro-batch-size 2 in place of 8
/// needs 12.1 GiB; …": fails with it where the run does not fit, or its states not on the disk. What it says
/// of one that fits is a warning, and "" where there is none.
std::string must_fit(const TrainConfig& config, const RanksHere& here, const FreeMemory& free,
                     const OpenCounter& open);

}  // namespace weft
