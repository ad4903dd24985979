// What stands in for MPI where it is not installed.
#include "weft/base/error.h"
#include "weft/comm/mpi.h"

namespace weft {

bool mpi_is_built() { return false; }

void run_under_mpi(const std::function<void(Communicator&)>&, const std::function<int()>&, Pulse*) {
  fail(Kind::usage, "mpi: this build's ranks are threads of one process; install libopenmpi-dev and build ",
       "again, or start one process with {run.ranks}");
}

}  // namespace weft
