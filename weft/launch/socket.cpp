// Addresses of two families, and the options that each socket gets.
#include "weft/launch/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "weft/base/error.h"

namespace weft::launch {
namespace {

constexpr int most_waiting = 65535;

sockaddr* with_port(hosts::Address& address, int port) {
  auto* out = reinterpret_cast<sockaddr*>(&address.at);
  if (out->sa_family == AF_INET)
    reinterpret_cast<sockaddr_in*>(out)->sin_port = htons(std::uint16_t(port));
  else
    reinterpret_cast<sockaddr_in6*>(out)->sin6_port = htons(std::uint16_t(port));
  return out;
}

bool is_loopback(const hosts::Address& address) {
  if (address.at.ss_family == AF_INET)
    return (ntohl(reinterpret_cast<const sockaddr_in&>(address.at).sin_addr.s_addr) >> 24) == 127;
  return address.at.ss_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address.at).sin6_addr);
}

void set(int fd, int level, int option, int value) { setsockopt(fd, level, option, &value, sizeof value); }

/// For all addresses of this machine; empty, with errno, where that cannot be.
Descriptor listen_wide(int port, int waiting) {
  sockaddr_in6 wide{};
  wide.sin6_family = AF_INET6;
  wide.sin6_port = htons(std::uint16_t(port));
  sockaddr_in old{};
  old.sin_family = AF_INET;
  old.sin_port = wide.sin6_port;
  Descriptor out(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  set(out.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (port != 0) set(out.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  bool bound = out && bind(out.get(), reinterpret_cast<const sockaddr*>(&wide), sizeof wide) == 0;
  if (!bound) {  // a machine without IPv6
    out = Descriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (port != 0) set(out.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    bound = bind(out.get(), reinterpret_cast<const sockaddr*>(&old), sizeof old) == 0;
  }
  if (bound && listen(out.get(), waiting) == 0) return out;
  return {};
}

/// At this address alone; empty, with errno, where it is not ours or taken.
Descriptor listen_only(hosts::Address address, int port) {
  Descriptor out(socket(address.at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  set(out.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  const bool bound = out && bind(out.get(), with_port(address, port), address.size) == 0;
  return bound && listen(out.get(), most_waiting) == 0 ? std::move(out) : Descriptor();
}

[[noreturn]] void no_port(const Endpoint& endpoint) {
  fail(Kind::usage, "launch: cannot listen at ", endpoint.host, " port ", endpoint.port, ": ",
       std::strerror(errno), "; another --master-port, or --standalone, needs none that is taken");
}

}  // namespace

Descriptor listen_at(const Endpoint& endpoint, Bind how, const hosts::Found& host) {
  const bool home = !host.addresses.empty() && is_loopback(host.addresses[0]);
  if (how == Bind::here && !home) {  // a cluster's names may also come later than its pods
    if (Descriptor out = listen_wide(endpoint.port, most_waiting)) return out;
    no_port(endpoint);
  }
  for (const hosts::Address& address : host.addresses)
    if (Descriptor out = listen_only(address, endpoint.port)) return out;
  if (how == Bind::if_ours) return {};
  no_port(endpoint);
}

Descriptor listen_anywhere() {
  if (Descriptor out = listen_wide(0, 4096)) return out;
  fail(Kind::device, "launch: no port is to be had: ", std::strerror(errno));
}

Descriptor connect_to(const hosts::Found& host, int port, std::string& why_not, int turn) {
  why_not = host.why;
  if (host.addresses.empty()) return {};
  hosts::Address to = host.addresses[std::size_t(turn) % host.addresses.size()];
  Descriptor out(socket(to.at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  set(out.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  if (connect(out.get(), with_port(to, port), to.size) == 0 || errno == EINPROGRESS) return out;
  why_not = std::strerror(errno);
  return {};
}

std::string failure_of(const Descriptor& socket) {
  int wrong = 0;
  socklen_t size = sizeof wrong;
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &wrong, &size);
  return wrong == 0 ? "" : std::strerror(wrong);
}

std::string address_of(const Descriptor& socket) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  getsockname(socket.get(), reinterpret_cast<sockaddr*>(&name), &size);
  std::array<char, NI_MAXHOST> out{};
  getnameinfo(reinterpret_cast<sockaddr*>(&name), size, out.data(), out.size(), nullptr, 0, NI_NUMERICHOST);
  return out.data();
}

Descriptor accept_from(int listener, bool& full) {
  Descriptor out(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  full = !out && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM);
  if (out) set(out.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  return out;
}

void raise_descriptor_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace weft::launch
