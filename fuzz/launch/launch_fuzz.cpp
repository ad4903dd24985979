// What people write for the launcher, by the first byte: a hostfile (h), filters over one (i, x), options a
// line each (o), an environment (e), faults to make (f). Whatever the bytes are, they are read exactly or
// refused with an Error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/launch/coordinator.h"
#include "weft/launch/faults.h"
#include "weft/launch/hostfile.h"
#include "weft/launch/options.h"
#include "weft/launch/seat.h"

namespace {

using namespace weft;
using namespace weft::launch;

void hosts(std::string_view content) {
  std::vector<Host> read = read_hosts("hosts", content);
  // What mpirun is given is the same list again, where no name needs brackets.
  if (content.find('[') == std::string_view::npos && read_hosts("again", hostfile_of(read)) != read)
    std::abort();
}

void options(std::string_view content) { static_cast<void>(read_options(split(content, '\n'), {})); }

void seat(std::string_view content) {
  Environment environment;
  for (const std::string_view line : split(content, '\n')) {
    const auto equals = line.find('=');
    if (equals != std::string_view::npos)
      environment.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  const Seat found = seat_in(environment);
  if (found.world > 0 && found.rank >= found.world) std::abort();
}

/// Every frame from one of three members, in turn; the clock goes on a second a frame.
void messages(std::string bytes) {
  constexpr std::size_t largest = 1 << 14;
  Coordinator coordinator(
      {.nodes = {1, 2}, .patience = {.join = 5, .last_call = 1}, .max_restarts = 2}, 0,
      [](int, const Message&) {}, [](const std::string&) {});
  for (int i = 0; const auto message = take_frame(bytes, largest); ++i) {
    std::string again = encode(*message);
    if (encode(*take_frame(again, again.size())) != encode(*message)) std::abort();
    if (const auto* join = std::get_if<Join>(&*message))
      coordinator.joined(i % 3, *join, i);
    else
      coordinator.heard(i % 3, *message, i);
    coordinator.tick(i);
    if (coordinator.members() > 3) std::abort();
  }
}

void read(char kind, std::string_view rest) {
  const std::vector<Host> four{{"a", {0, 1, 2}}, {"b", {0, 1}}, {"c", {0}}, {"fe80::1", {0, 1}}};
  if (kind == 'h') hosts(rest);
  if (kind == 'i' && included(four, rest).empty()) std::abort();
  if (kind == 'x' && excluded(four, rest).empty()) std::abort();
  if (kind == 'o') options(rest);
  if (kind == 'e') seat(rest);
  if (kind == 'f') {
    const std::vector<Fault> faults = read_faults("x", rest);
    for (const Fault& fault : faults)
      if (read_faults("x", faults_of({fault}, fault.attempt)) != std::vector{fault}) std::abort();
  }
  if (kind == 'm') messages(std::string(rest));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  try {
    read(static_cast<char>(data[0]), {reinterpret_cast<const char*>(data) + 1, size - 1});
  } catch (const weft::Error&) {
  }
  return 0;
}
