// Ranks as processes that reach each other by TCP: no MPI, and nobody who must start them all at once.
#pragma once

#include <functional>
#include <string>

#include "weft/comm/communicator.h"

namespace weft {

/// Where this process sits, and where all meet: rank 0 listens there, or at a socket that it was given.
struct TcpSeat {
  int rank = 0, world = 1;
  std::string host = "127.0.0.1";  // of rank 0
  int port = 0;
  int listener = -1;      // rank 0's, listening already; -1: it opens one
  std::string job;        // who says another name here is a stranger
  double patience = 120;  // seconds until all must have come
};

/// Runs body as this process's rank. Sums have the bits that threads give them. Returns 0, or what tell()
/// makes of the exception at hand; then the process must end, and the others' words throw. Strangers at the
/// ports change nothing. Bytes travel as they are: for the inside of a cluster.
int run_under_tcp(const TcpSeat& seat, const std::function<void(Communicator& world)>& body,
                  const std::function<int()>& tell, Pulse* pulse = nullptr);

}  // namespace weft
