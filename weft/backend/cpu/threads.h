// How many threads a rank's arithmetic may use.
#pragma once

namespace weft {

/// Processors that this process may run on.
int processors();

/// The number asked for, all processors for 0; refused where it makes no sense.
int checked_threads(const char* who, int asked);

}  // namespace weft
