// Ranks tell one another texts.
#pragma once

#include <string>
#include <vector>

#include "weft/comm/communicator.h"

namespace weft {

/// Every rank's text, in rank order. The messages lie in the host's memory.
std::vector<std::string> tell_all(Communicator& world, const std::string& mine);

}  // namespace weft
