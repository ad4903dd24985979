// What a device computed in plain loops of doubles, a hundred times as slowly as in its own.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace weft {

/// By the kernel's name.
using PlainCalls = std::map<std::string, std::int64_t>;

}  // namespace weft
