// Sockets that never block.
#pragma once

#include <string>

#include "weft/base/hosts.h"
#include "weft/launch/loop.h"
#include "weft/launch/options.h"

namespace weft::launch {

enum class Bind { here, if_ours };

/// Listens at the endpoint, whose host was found so; port 0: any. A loopback address is bound as it is, for
/// any other all addresses of this machine, of IPv4 and IPv6. With if_ours, at the host's own address, and
/// empty where none of them is ours or the port is taken.
Descriptor listen_at(const Endpoint& endpoint, Bind how, const hosts::Found& host);
/// The same where the host is a number.
inline Descriptor listen_at(const Endpoint& endpoint, Bind how) {
  return listen_at(endpoint, how, hosts::numeric(endpoint.host));
}
/// At a port of the kernel's choice, for all addresses of this machine.
Descriptor listen_anywhere();

/// Begins to connect; empty, with the reason, where the host is not known or there is no route. It may have
/// several addresses, of which some lead nowhere from here: each turn takes the next.
Descriptor connect_to(const hosts::Found& host, int port, std::string& why_not, int turn = 0);
/// The same where the host is a number.
inline Descriptor connect_to(const Endpoint& endpoint, std::string& why_not) {
  return connect_to(hosts::numeric(endpoint.host), endpoint.port, why_not);
}
/// The error of a connection that has been begun; "" where it stands.
std::string failure_of(const Descriptor& socket);
/// This machine's address as the other end of the connection sees it.
std::string address_of(const Descriptor& socket);
/// A waiting connection; empty where there is none. `full`: this process has no descriptor left.
Descriptor accept_from(int listener, bool& full);

/// As many descriptors as the system lets this process have.
void raise_descriptor_limit();

}  // namespace weft::launch
