// Ranks tell one another texts, and fail together: a rank whose disk is full must not leave the others
// waiting in a save, and the run may go on.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "weft/comm/communicator.h"

namespace weft::checkpoint {

/// Every rank's text, in rank order. The messages lie in the host's memory.
std::vector<std::string> tell_all(Communicator& world, const std::string& mine);

/// Every rank works, then all learn what each returned. Where one failed, all throw the failure of the first
/// such rank, and the communicator stays whole.
std::vector<std::string> agree(Communicator& world, const std::function<std::string()>& work);

}  // namespace weft::checkpoint
