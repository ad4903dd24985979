// Launches tell each other by a name in the kernel, one a port, which goes with whoever holds it.
#include "weft/launch/port.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <random>
#include <string>

#include "weft/base/error.h"

namespace weft::launch {
namespace {

constexpr int last_of_all = 65535, enough = 1000;
constexpr int agents_by_rendezvous = 29400, agents_by_master = 29500;

/// A name of the abstract kind: no file, and of this network alone, as ports are.
Descriptor claim_of(int port) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string words = text("weft launch, port ", port);
  std::memcpy(name.sun_path + 1, words.data(), words.size());
  Descriptor out(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto size = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + words.size());
  if (!out || bind(out.get(), reinterpret_cast<const sockaddr*>(&name), size) != 0) return {};
  return out;
}

/// Of both families: a worker may listen at one, or at both in one.
bool is_free(int port) {
  sockaddr_in6 wide{};
  wide.sin6_family = AF_INET6;
  wide.sin6_port = htons(std::uint16_t(port));
  const Descriptor both(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int no = 0;
  setsockopt(both.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  if (both && bind(both.get(), reinterpret_cast<const sockaddr*>(&wide), sizeof wide) == 0) return true;
  if (both && errno == EADDRINUSE) return false;
  sockaddr_in name{};  // a machine without IPv6
  name.sin_family = AF_INET;
  name.sin_port = wide.sin6_port;
  const Descriptor trial(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return trial && bind(trial.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0;
}

}  // namespace

Ports ports_left_alone() {
  int first = 0, last = last_of_all;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first >> last;
  if (last_of_all - last >= enough) return {last + 1, last_of_all};
  return {10000, last_of_all};
}

ReservedPort reserve_port(Ports among) {
  const int count = among.last - among.first + 1;
  std::random_device dice;
  const int begin = int(dice() % unsigned(std::max(1, count)));
  for (int i = 0; i < count; ++i) {
    const int port = among.first + (begin + i) % count;
    if (port == agents_by_rendezvous || port == agents_by_master) continue;
    Descriptor claim = claim_of(port);
    if (claim && is_free(port)) return {port, std::move(claim)};
  }
  fail(Kind::device, "launch: every port from ", among.first, " to ", among.last,
       " is taken; name one by --master-port");
}

}  // namespace weft::launch
