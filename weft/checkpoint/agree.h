// Ranks fail together: a rank whose disk is full must not leave the others waiting in a save, and the run may
// go on.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "weft/comm/communicator.h"

namespace weft::checkpoint {

/// Every rank works, then all learn what each returned. Where one failed, all throw the failure of the first
/// such rank, and the communicator stays whole.
std::vector<std::string> agree(Communicator& world, const std::function<std::string()>& work);

}  // namespace weft::checkpoint
