#include "weft/base/descriptor.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace weft {

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void Descriptor::reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

int port_of(const Descriptor& socket) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  getsockname(socket.get(), reinterpret_cast<sockaddr*>(&name), &size);
  return ntohs(name.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(name).sin_port
                                         : reinterpret_cast<sockaddr_in6&>(name).sin6_port);
}

}  // namespace weft
