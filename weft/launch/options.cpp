// Walks the words up to the program's name, then what the environment adds, then what contradicts.
#include "weft/launch/options.h"

#include <algorithm>
#include <csignal>

#include "weft/base/error.h"
#include "weft/base/flags.h"
#include "weft/base/nearest.h"
#include "weft/launch/options_table.h"

namespace weft::launch {
namespace {

const Row& row_of(std::string_view typed, std::string_view name) {
  const std::string asked = dashed(name);
  std::vector<std::string_view> names;
  for (const Row& row : option_table()) {
    if (row.about.name == asked) return row;
    names.push_back(row.about.name);
  }
  fail(Kind::usage, "launch: ", typed, " is not an option", did_you_mean(asked, names),
       "; weft help launch lists them, and the program's own follow its name");
}

const Row& row_of_letter(std::string_view typed) {
  for (const Row& row : option_table())
    if (!row.about.letter.empty() && row.about.letter == typed.substr(1, 1)) return row;
  fail(Kind::usage, "launch: ", typed, " is not an option; weft help launch lists them");
}

void apply(Options& options, const Row& row, const std::string& who, std::string_view word) {
  if (!row.refused.empty()) fail(Kind::usage, who, ": ", row.refused);
  row.set(options, who, word);
  options.given.insert(std::string(row.about.name));
  if (!row.no_effect.empty())
    options.notices.push_back(text("no effect here: ", who, " (", row.no_effect, ")"));
}

/// Reads one option at words[at]; returns how many words it took.
std::size_t take(Options& options, std::span<const std::string_view> words) {
  const std::string_view typed = words[0];
  const bool is_long = typed.starts_with("--");
  const auto equals = is_long ? typed.find('=') : std::string_view::npos;
  const std::string_view name =
      is_long ? typed.substr(2, equals == std::string_view::npos ? equals : equals - 2) : "";
  const Row& row = is_long ? row_of(typed, name) : row_of_letter(typed);
  const std::string who = text("launch: ", is_long ? typed.substr(0, equals) : typed.substr(0, 2));
  const bool joined = is_long ? equals != std::string_view::npos : typed.size() > 2;
  const std::string_view value = joined ? typed.substr(is_long ? equals + 1 : 2) : "";
  if (row.about.value.empty()) {
    if (joined) fail(Kind::usage, who, " takes no value, and '", value, "' follows it");
    apply(options, row, who, "");
    return 1;
  }
  if (!joined && words.size() < 2) fail(Kind::usage, who, " needs a value: ", row.about.value);
  apply(options, row, who, joined ? value : words[1]);
  return joined ? 1 : 2;
}

/// PET_NNODES for --nnodes; a switch is on with 1.
void take_environment(Options& options, const Environment& environment) {
  for (const Row& row : option_table()) {
    if (!row.torchrun || options.given.contains(std::string(row.about.name))) continue;
    std::string name = "PET_";
    for (const char c : row.about.name)
      name += c == '-' ? '_' : char(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    const std::string_view word = value_of(environment, name);
    if (word.empty() || (row.about.value.empty() && word == "0")) continue;
    if (row.about.value.empty() && word != "1")
      fail(Kind::usage, "environment: ", name, ": '", word, "' is neither 0 nor 1");
    // What a platform sets for everybody and has no effect here is not worth a notice.
    if (row.no_effect.empty()) apply(options, row, text("environment: ", name), word);
  }
}

/// The node's place as an Indexed Job or a Slurm step says it, where no option does. What a platform set for
/// torchrun must say the same.
void take_node_rank(Options& o, const Environment& environment, bool by_option) {
  if (by_option || o.nodes.most == 1) return;
  const bool step = !value_of(environment, "SLURM_STEP_NUM_TASKS").empty();
  std::string_view from = o.node_rank >= 0 ? "PET_NODE_RANK" : "";
  for (const std::string_view name : {"JOB_COMPLETION_INDEX", "SLURM_NODEID"}) {
    const std::string_view word = value_of(environment, name);
    if (word.empty() || (name == "SLURM_NODEID" && !step)) continue;
    const int rank = whole_number(text("environment: ", name), word, 0);
    if (!from.empty() && rank != o.node_rank)
      fail(Kind::usage, "environment: ", from, " is ", o.node_rank, " and ", name, " is ", rank,
           "; say --node-rank which is meant");
    o.node_rank = rank;
    from = name;
  }
}

void must_not_meet(const Options& o, std::string_view one, std::initializer_list<std::string_view> others) {
  if (!o.given.contains(std::string(one))) return;
  for (const std::string_view other : others)
    if (o.given.contains(std::string(other)))
      fail(Kind::usage, "launch: --", one, " and --", other, " contradict each other; leave one out");
}

void must_have(const Options& o, std::string_view one, std::string_view needed) {
  if (o.given.contains(std::string(one)) && !o.given.contains(std::string(needed)))
    fail(Kind::usage, "launch: --", one, " needs --", needed);
}

void check(Options& o) {
  must_not_meet(o, "include",
                {"exclude", "num-nodes", "num-gpus", "num-accelerators", "nnodes", "nproc-per-node"});
  must_not_meet(o, "exclude", {"num-nodes", "num-gpus", "num-accelerators", "nnodes", "nproc-per-node"});
  must_not_meet(o, "nproc-per-node", {"num-gpus", "num-accelerators"});
  must_not_meet(o, "nnodes", {"num-nodes", "hostfile"});
  must_not_meet(o, "rdzv-endpoint", {"master-addr", "master-port"});
  must_not_meet(o, "standalone", {"hostfile", "launcher"});
  must_have(o, "include", "hostfile");
  must_have(o, "exclude", "hostfile");
  must_have(o, "launcher-args", "launcher");
  if (!o.hostfile.empty() && o.by == By::agents) o.by = By::openmpi;
  if (o.by != By::agents && o.nodes.least != o.nodes.most)
    fail(Kind::usage,
         "launch: MIN:MAX nodes need an agent on each of them; mpirun and srun start a fixed number");
  if (o.standalone) o.nodes = {};
  if (o.node_rank >= o.nodes.most)
    fail(Kind::usage, "launch: --node-rank ", o.node_rank, " is not below the ", o.nodes.most,
         " of --nnodes");
}

}  // namespace

Options read_options(std::span<const std::string_view> words, const Environment& environment) {
  Options options{.signals = {SIGTERM, SIGINT, SIGHUP, SIGQUIT}};
  while (!words.empty() && words[0].size() > 1 && words[0][0] == '-') {
    if (words[0] == "--") {
      words = words.subspan(1);
      break;
    }
    words = words.subspan(take(options, words));
  }
  const bool place_by_option = options.given.contains("node-rank");
  take_environment(options, environment);
  take_node_rank(options, environment, place_by_option && options.node_rank >= 0);
  if (words.empty())
    fail(Kind::usage,
         "launch: name a program: weft launch --nproc-per-node 2 train gpt …; weft help launch shows "
         "examples");
  options.program = words[0];
  options.arguments.assign(words.begin() + 1, words.end());
  check(options);
  return options;
}

}  // namespace weft::launch
