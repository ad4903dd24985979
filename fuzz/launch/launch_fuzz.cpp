// What people write for the launcher, by the first byte: a hostfile (h), filters over one (i, x), options a
// line each (o), an environment (e), faults to make (f), where agents meet (p), a platform's variables for
// options (v); and what a launcher tells its ranks (w), what mpirun (b) and srun (s) say of a failure,
// Slurm's lists of hosts and tasks (l), and the words to a process that takes a seat (t). Whatever the bytes
// are, they are read exactly or refused with an Error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/launch/coordinator.h"
#include "weft/launch/elsewhere.h"
#include "weft/launch/faults.h"
#include "weft/launch/herald.h"
#include "weft/launch/hostfile.h"
#include "weft/launch/options.h"
#include "weft/launch/placement.h"
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

Environment environment_in(std::string_view content) {
  Environment out;
  for (const std::string_view line : split(content, '\n')) {
    const auto equals = line.find('=');
    if (equals != std::string_view::npos) out.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return out;
}

/// A pod's or a step's variables, with nothing on the command line but several nodes, and the program.
void variables(std::string_view content) {
  const std::vector<std::string_view> words{"--rdzv-id", "job", "x"};
  const Options found = read_options(words, environment_in(content));
  if (found.nodes.least > found.nodes.most || found.node_rank >= found.nodes.most) std::abort();
}

/// What was said is not made up.
void must_be_said(const Said& found, std::size_t bytes) {
  if (found.words.size() > bytes || found.rank < -1 || found.end.code < 0 || found.end.signal < 0)
    std::abort();
}

void slurms_lists(std::string_view list) {
  if (first_host(list).find_first_of("[],") != std::string::npos) std::abort();
  const Environment node{{"SLURM_STEP_TASKS_PER_NODE", std::string(list)}, {"SLURM_NODEID", "3"}};
  if (tasks_of_slurm_here(node) < 0) std::abort();
}

void placement(std::string_view content) {
  const std::vector<std::string> words = to_words(read_placement(split(content, '\n')));
  const std::vector<std::string_view> again(words.begin(), words.end());
  if (to_words(read_placement(again)) != words) std::abort();
}

void seat(std::string_view content) {
  const Seat found = seat_in(environment_in(content));
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
  if (kind == 'w') {
    const Watcher watcher = read_watcher(rest);
    if (read_watcher(to_word(watcher)).hosts != watcher.hosts) std::abort();
  }
  if (kind == 'p' && read_places("x", rest, 1).empty()) std::abort();
  if (kind == 'm') messages(std::string(rest));
  if (kind == 'v') variables(rest);
  if (kind == 'b') must_be_said(read_mpirun(rest), rest.size() + 1);
  if (kind == 's') must_be_said(read_srun(rest), rest.size() + 1);
  if (kind == 'l') slurms_lists(rest);
  if (kind == 't') placement(rest);
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
