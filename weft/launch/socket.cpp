// getaddrinfo, and the options that each socket gets.
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
#include <memory>

#include "weft/base/error.h"

namespace weft::launch {
namespace {

constexpr int most_waiting = 65535;

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses look_up(const Endpoint& endpoint, std::string& why_not) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int wrong =
      getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &wanted, &found);
  if (wrong != 0) why_not = text("host ", endpoint.host, " is not known: ", gai_strerror(wrong));
  return {wrong == 0 ? found : nullptr, freeaddrinfo};
}

bool is_loopback(const addrinfo& a) {
  if (a.ai_family == AF_INET)
    return (ntohl(reinterpret_cast<const sockaddr_in*>(a.ai_addr)->sin_addr.s_addr) >> 24) == 127;
  return a.ai_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(a.ai_addr)->sin6_addr);
}

void set(int fd, int level, int option, int value) { setsockopt(fd, level, option, &value, sizeof value); }

/// Every address of this machine, in the family of `a`.
void widen(addrinfo& a) {
  if (a.ai_family == AF_INET)
    reinterpret_cast<sockaddr_in*>(a.ai_addr)->sin_addr.s_addr = htonl(INADDR_ANY);
  else
    reinterpret_cast<sockaddr_in6*>(a.ai_addr)->sin6_addr = in6addr_any;
}

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

[[noreturn]] void no_port(const Endpoint& endpoint) {
  fail(Kind::usage, "launch: cannot listen at ", endpoint.host, " port ", endpoint.port, ": ",
       std::strerror(errno), "; another --master-port, or --standalone, needs none that is taken");
}

}  // namespace

Descriptor listen_at(const Endpoint& endpoint, Bind how) {
  std::string why;
  const Addresses found = look_up(endpoint, why);
  if (!found && how == Bind::if_ours) return {};
  if (!found) {  // a cluster's names may come later than its pods
    Descriptor out = listen_wide(endpoint.port, most_waiting);
    if (!out) no_port(endpoint);
    return out;
  }
  addrinfo& a = *found;
  if (how == Bind::here && !is_loopback(a)) widen(a);
  Descriptor out(socket(a.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  set(out.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (bind(out.get(), a.ai_addr, a.ai_addrlen) == 0 && listen(out.get(), most_waiting) == 0) return out;
  if (how == Bind::if_ours) return {};
  no_port(endpoint);
}

Descriptor listen_anywhere() {
  if (Descriptor out = listen_wide(0, 4096)) return out;
  fail(Kind::device, "launch: no port is to be had: ", std::strerror(errno));
}

Descriptor connect_to(const Endpoint& endpoint, std::string& why_not, int turn) {
  const Addresses found = look_up(endpoint, why_not);
  if (!found) return {};
  int count = 0;
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) ++count;
  const addrinfo* at = found.get();
  for (int i = turn % count; i > 0; --i) at = at->ai_next;
  Descriptor out(socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  set(out.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  if (connect(out.get(), at->ai_addr, at->ai_addrlen) == 0 || errno == EINPROGRESS) return out;
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
