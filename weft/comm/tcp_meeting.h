// How processes that know one address come to have a connection each to each.
#pragma once

#include <utility>
#include <vector>

#include "weft/comm/tcp.h"

namespace weft {

/// A descriptor that closes itself.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket() { reset(); }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset();

 private:
  int fd_ = -1;
};

/// By rank; this rank's own is empty. None of them blocks. Rank 0 gathers all others and tells everybody who
/// is where; then each connects to those below it. Fails where somebody has not come in time, by rank.
std::vector<Socket> meet(const TcpSeat& seat);

}  // namespace weft
