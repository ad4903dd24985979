// Counts what this program asks of the heap, so that a test can say that something asks nothing.
#pragma once

#include <cstdint>

namespace weft {

/// Calls of operator new by any thread so far.
std::int64_t heap_calls();

}  // namespace weft
