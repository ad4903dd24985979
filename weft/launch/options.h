// What a person asks of `weft launch`, in torchrun's words, DeepSpeed's, or its own.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/launch/environment.h"
#include "weft/launch/faults.h"

namespace weft::launch {

/// MIN:MAX; one number is both.
struct Nodes {
  int least = 1, most = 1;
  bool operator==(const Nodes&) const = default;
};

/// Which of a worker's two streams; the numbers are torchrun's.
enum class Streams : std::uint8_t { none = 0, out = 1, err = 2, both = 3 };
inline bool has(Streams all, Streams one) { return (std::uint8_t(all) & std::uint8_t(one)) != 0; }

/// `3`, or `0:1,12:3` by local rank.
struct Routing {
  Streams others = Streams::none;
  std::map<int, Streams> by_rank;
  Streams of(int local_rank) const;
};

struct Endpoint {
  std::string host = "127.0.0.1";
  int port = 29500;
  bool operator==(const Endpoint&) const = default;
};

/// Seconds, under torchrun's names in --rdzv-conf.
struct Patience {
  double join = 600;      // until MIN nodes have come
  double last_call = 30;  // after MIN, for more up to MAX
  double beat = 3;        // between two signs of life
  int missed_beats = 4;   // so many, and a node is lost
};

/// Seconds from a failure to SIGKILL for its peers, and for who is cut off: nobody has anything to save then.
constexpr double peers_grace = 3;

struct HangRules {
  double limit = 0;         // seconds without a sign of life that are a hang; 0: learned
  double least = 15;        // of what is learned from steps
  double before = 600;      // while nothing is learned yet, and while starting, evaluating and saving
  double factor = 3;        // times the longest that was seen
  double slow_window = 60;  // seconds over which ranks' work is compared
};

enum class By : std::uint8_t { agents, openmpi, slurm, ssh };

struct Options {
  Nodes nodes;
  std::optional<int> per_node;  // workers a node; absent: one, or what a layout needs
  bool processes = false;       // ranks of weft's own programs as processes, over MPI
  bool standalone = false;
  int node_rank = -1;  // -1: whatever the rendezvous gives
  Endpoint master;
  std::vector<Endpoint> places;  // where agents may meet; empty: at the master's alone
  std::string local_address, run_id = "none", role = "default";
  Patience patience;
  int max_restarts = 0;
  double grace = 25;  // from a signal to SIGKILL; below the 30 s that Kubernetes and torchrun wait
  HangRules hang;
  bool watches = true;        // looks for hangs and slow ranks
  std::vector<Fault> faults;  // made on purpose
  std::vector<int> signals;   // forwarded, and then the job ends
  std::string log_dir;
  Routing redirects, tee;
  std::set<int> console_ranks;  // empty: all
  std::string prefix;           // before each line on the console that is teed
  bool python = true;           // a program that ends in .py is Python's
  std::string hostfile, include, exclude, launcher_arguments;
  int ssh_port = 0;
  By by = By::agents;
  std::string program;
  std::vector<std::string> arguments;
  std::set<std::string> given;       // names of options that someone set
  std::vector<std::string> notices;  // to be said once: what was accepted and has no effect here
};

struct OptionRow {
  std::string_view name, letter, value, help;
  std::string_view topic;
};
/// Every option that has an effect, for help.
std::vector<OptionRow> option_rows();

/// The command line up to the program's name; what follows is the program's. PET_NAME of the environment
/// stands in for torchrun's options that the command line leaves out. Both spellings, no abbreviations. Fails
/// for what weft cannot honor, by name, and for options that contradict each other.
Options read_options(std::span<const std::string_view> words, const Environment& environment);

Nodes read_nodes(std::string_view who, std::string_view word);
Routing read_routing(std::string_view who, std::string_view words);
/// "host", "host:port", "[::1]:port"; the host may be missing.
Endpoint read_endpoint(std::string_view who, std::string_view word, int otherwise);
/// A host alone, in brackets or not.
std::string read_host(std::string_view who, std::string_view word);
/// One, or three and more with commas between: of two, neither could outvote the other.
std::vector<Endpoint> read_places(std::string_view who, std::string_view words, int otherwise);
/// Returns the names that have no effect here.
std::vector<std::string> read_patience(std::string_view who, std::string_view words, Patience& to);

}  // namespace weft::launch
