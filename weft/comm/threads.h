// Ranks as threads of one process: the whole of distributed training in one debugger.
#pragma once

#include <functional>

#include "weft/comm/communicator.h"

namespace weft {

class PulseBoard;

/// Runs body once per rank, each on its own thread, and rethrows the first failure. A rank that throws wakes
/// the others: nobody waits for the dead.
/// On a board, where there is one, each says what it is doing.
void run_as_threads(int ranks, const std::function<void(Communicator& world)>& body,
                    const PulseBoard* board = nullptr);

}  // namespace weft
