// Whether ranks read each other's activations, and gradients, in the order in which they were sent.
#pragma once

#include <string>

#include "weft/pipe/schedule.h"

namespace weft::pipe {

/// "": they do. Else the first letter that another one overtakes, as a sentence. Some carriers keep letters
/// by tag until they are asked for, others only in their order.
std::string overtaken_letter(const Schedule& schedule);

}  // namespace weft::pipe
