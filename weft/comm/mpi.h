// Ranks as processes, on one machine or many, that mpirun or srun started.
#pragma once

#include <functional>

#include "weft/comm/communicator.h"

namespace weft {

/// False: this build speaks through threads only, and run_under_mpi says so.
bool mpi_is_built();

/// Runs body as this process's rank. Sums have the bits that threads give them. MPI is spoken from the
/// calling thread alone, once in a process. A rank that fails calls tell() while its exception is at hand, to
/// say why and for the exit status, and ends all others: they are stopped where they are and say nothing.
/// Where there is a pulse it is told what this rank waits for.
void run_under_mpi(const std::function<void(Communicator& world)>& body, const std::function<int()>& tell,
                   Pulse* pulse = nullptr);

}  // namespace weft
