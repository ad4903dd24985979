#include "weft/launch/environment.h"

#include <unistd.h>

#include <charconv>

#include "weft/base/error.h"

namespace weft::launch {

Environment environment_of_this_process() {
  Environment out;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view line = *at;
    const auto equals = line.find('=');
    if (equals != std::string_view::npos) out.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return out;
}

std::string host_name() {
  std::string name(256, '\0');
  gethostname(name.data(), name.size() - 1);
  return name.c_str();
}

std::string_view value_of(const Environment& environment, std::string_view name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string_view() : std::string_view(found->second);
}

int whole_number(std::string_view who, std::string_view word, int least) {
  int value = 0;
  const char* end = word.data() + word.size();
  const auto [stop, wrong] = std::from_chars(word.data(), end, value);
  if (wrong == std::errc::result_out_of_range)
    fail(Kind::usage, who, ": '", word, "' is larger than any number of ranks");
  if (wrong != std::errc{} || stop != end) fail(Kind::usage, who, ": '", word, "' is not a whole number");
  if (value < least) fail(Kind::usage, who, ": ", value, " is less than ", least);
  return value;
}

}  // namespace weft::launch
