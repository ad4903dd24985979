// A process's variables as a value, so that what is read from them and given to others needs no process.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace weft::launch {

using Environment = std::map<std::string, std::string, std::less<>>;

Environment environment_of_this_process();

/// This machine's name.
std::string host_name();

/// Its value; "" where it is not set.
std::string_view value_of(const Environment& environment, std::string_view name);

/// A whole number of at least `least`, or a usage error that begins with `who`.
int whole_number(std::string_view who, std::string_view word, int least);

}  // namespace weft::launch
