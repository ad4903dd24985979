// What a person may have meant by a name that does not exist.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace weft {

/// The known name closest to what was typed, or nothing if none is close.
std::string_view nearest(std::string_view typed, std::span<const std::string_view> known);
/// ", did you mean NAME", or nothing.
std::string did_you_mean(std::string_view typed, std::span<const std::string_view> known);

}  // namespace weft
