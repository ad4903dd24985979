// How processes that know one address come to have a connection each to each.
#pragma once

#include <vector>

#include "weft/base/descriptor.h"
#include "weft/base/hosts.h"
#include "weft/comm/tcp.h"

namespace weft {

/// By rank; this rank's own is empty. None of them blocks. Rank 0 gathers all others and tells everybody who
/// is where; then each connects to those below it. Fails where somebody has not come in time, by rank; the
/// name of rank 0's host may come as late, and is asked for on a thread of its own.
std::vector<Descriptor> meet(const TcpSeat& seat, const hosts::NameService& names = hosts::ask_the_system);

}  // namespace weft
