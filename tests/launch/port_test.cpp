#include "weft/launch/port.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <fstream>
#include <set>
#include <vector>

#include "tests/support/says.h"
#include "weft/base/error.h"
#include "weft/launch/socket.h"

using namespace weft;
using namespace weft::launch;
using weft::support::says;

namespace {

/// As a worker does: rank 0 binds MASTER_PORT and listens.
Descriptor bound(int port, int reuse) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(std::uint16_t(port));
  Descriptor out(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  setsockopt(out.get(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
  const bool has = bind(out.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0 &&
                   listen(out.get(), 1) == 0;
  return has ? std::move(out) : Descriptor();
}

}  // namespace

TEST(Port, belongs_to_one_launch_at_a_time) {
  std::vector<ReservedPort> held;
  std::set<int> numbers;
  for (int i = 0; i < 200; ++i) numbers.insert(held.emplace_back(reserve_port(ports_left_alone())).number);
  EXPECT_EQ(numbers.size(), 200U);
  const int first = held.front().number;
  EXPECT_EQ(
      says([&] {
        reserve_port({first, first});
      }),
      text("device: launch: every port from ", first, " to ", first, " is taken; name one by --master-port"));
  held.clear();
  EXPECT_EQ(reserve_port({first, first}).number, first);
}

TEST(Port, can_be_bound_by_its_worker_in_any_way) {
  const ReservedPort port = reserve_port(ports_left_alone());
  for (const int reuse : {0, 1}) EXPECT_TRUE(bound(port.number, reuse)) << reuse;
}

TEST(Port, is_none_that_somebody_listens_at) {
  const Descriptor taken = listen_anywhere();
  const int port = port_of(taken);
  EXPECT_THROW(reserve_port({port, port}), Error);
}

TEST(Port, is_none_that_somebody_listens_at_by_either_family_alone) {
  for (const char* host : {"127.0.0.1", "::1"}) {
    const Descriptor taken = listen_at({.host = host, .port = 0}, Bind::if_ours);
    if (!taken) continue;  // a machine without IPv6
    const int port = port_of(taken);
    EXPECT_THROW(reserve_port({port, port}), Error) << host;
  }
}

TEST(Port, is_not_among_those_that_the_kernel_hands_out) {
  int first = 0, last = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first >> last;
  const Ports ports = ports_left_alone();
  if (last <= 64535)
    EXPECT_EQ(ports.first, last + 1);
  else
    EXPECT_EQ(ports.first, 10000);
  EXPECT_EQ(ports.last, 65535);
}
