// Ranks that speak over TCP in one process.
#pragma once

#include <gtest/gtest.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/comm/tcp.h"

namespace weft::testing {

inline sockaddr_in loopback(int port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(std::uint16_t(port));
  return at;
}

/// Where rank 0 listens: a port that the kernel chose.
struct Door {
  Door() {
    const sockaddr_in at = loopback(0);
    EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    EXPECT_EQ(listen(fd, 64), 0);
    sockaddr_in name{};
    socklen_t size = sizeof name;
    getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size);
    port = ntohs(name.sin_port);
  }
  ~Door() { close(fd); }
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;
  TcpSeat seat(int rank, int world, const char* job = "job") const {
    return {.rank = rank, .world = world, .port = port, .listener = rank == 0 ? fd : -1, .job = job};
  }
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), port = 0;
};

inline std::string message_at_hand() {
  try {
    throw;
  } catch (const std::exception& e) {
    return e.what();
  }
}

/// Each rank is a thread, with its own end of the connections, as a process would have. What each said when
/// it failed; "" where it ended well.
inline std::vector<std::string> run_over_tcp(const Door& door, int ranks,
                                             const std::function<void(Communicator&)>& body) {
  std::vector<std::string> said(static_cast<std::size_t>(ranks));
  std::vector<std::jthread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      run_under_tcp(door.seat(r, ranks), body, [&said, r] {
        said[std::size_t(r)] = message_at_hand();
        return 7;
      });
    });
  threads.clear();
  return said;
}

}  // namespace weft::testing
