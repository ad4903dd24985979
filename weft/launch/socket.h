// Names to addresses, and sockets that never block.
#pragma once

#include <string>

#include "weft/launch/loop.h"
#include "weft/launch/options.h"

namespace weft::launch {

enum class Bind { here, if_ours };

/// Listens at the endpoint; port 0: any. A loopback address is bound as it is, another host's name for all
/// addresses of this machine. With if_ours, empty where the address is another machine's or the port is
/// taken.
Descriptor listen_at(const Endpoint& endpoint, Bind how);
/// At a port of the kernel's choice, for all addresses of this machine.
Descriptor listen_anywhere();

/// Begins to connect; empty, with the reason, where the name is not known yet or there is no route. A name
/// may have several addresses, of which some lead nowhere from here: each turn takes the next.
Descriptor connect_to(const Endpoint& endpoint, std::string& why_not, int turn = 0);
/// The error of a connection that has been begun; "" where it stands.
std::string failure_of(const Descriptor& socket);
/// This machine's address as the other end of the connection sees it.
std::string address_of(const Descriptor& socket);
/// A waiting connection; empty where there is none. `full`: this process has no descriptor left.
Descriptor accept_from(int listener, bool& full);

/// As many descriptors as the system lets this process have.
void raise_descriptor_limit();

}  // namespace weft::launch
