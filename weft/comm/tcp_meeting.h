// How processes that know one address come to have a connection each to each.
#pragma once

#include <vector>

#include "weft/base/descriptor.h"
#include "weft/comm/tcp.h"

namespace weft {

/// By rank; this rank's own is empty. None of them blocks. Rank 0 gathers all others and tells everybody who
/// is where; then each connects to those below it. Fails where somebody has not come in time, by rank.
std::vector<Descriptor> meet(const TcpSeat& seat);

}  // namespace weft
