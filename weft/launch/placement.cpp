// A word a value, so that they pass through mpirun and srun as a program's arguments do.
#include "weft/launch/placement.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/launch/contract.h"
#include "weft/launch/seat.h"

namespace weft::launch {
namespace {

constexpr std::string_view who = "launch: --take-a-seat";
constexpr std::string_view nothing = "-";

std::string shown(const std::string& value) { return value.empty() ? std::string(nothing) : value; }
std::string value(std::string_view word) { return word == nothing ? "" : std::string(word); }

/// Which host a rank sits on, where hosts are filled one after the other.
int host_of(int rank, const std::vector<int>& slots) {
  for (std::size_t i = 0; i < slots.size(); ++i)
    if ((rank -= slots[i]) < 0) return int(i);
  return 0;
}

int number_in(const Environment& environment, const char* name, int otherwise) {
  const std::string_view word = value_of(environment, name);
  return word.empty() ? otherwise : whole_number(text("environment: ", name), word, 0);
}

std::string address_of(const Placement& placement, const Environment& environment) {
  if (!placement.address.empty()) return placement.address;
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"})
    if (std::string host = first_host(value_of(environment, name)); !host.empty()) return host;
  return "127.0.0.1";
}

}  // namespace

std::vector<std::string> to_words(const Placement& p) {
  return {shown(p.address), text(p.port),  text(p.restarts),         text(p.max_restarts),
          shown(p.run_id),  shown(p.role), shown(join(p.slots, ","))};
}

Placement read_placement(std::span<const std::string_view> words) {
  if (words.size() < placement_words)
    fail(Kind::usage, who, " is weft launch's own word to the processes that mpirun and srun start for it");
  Placement out{.address = value(words[0]),
                .port = whole_number(who, words[1], 0),
                .restarts = whole_number(who, words[2], 0),
                .max_restarts = whole_number(who, words[3], 0),
                .run_id = value(words[4]),
                .role = value(words[5])};
  if (words[6] != nothing)
    for (const std::string_view word : split(words[6], ',')) out.slots.push_back(whole_number(who, word, 1));
  return out;
}

void apply(const Placement& p, Environment& environment) {
  const Seat seat = seat_in(environment);
  if (seat.said_by.empty())
    fail(Kind::usage, who, ": neither mpirun nor srun says which rank this is; its variables are not here");
  const bool slurm = seat.said_by == "SLURM_PROCID";
  Begin begin{.restarts = p.restarts, .max_restarts = p.max_restarts};
  begin.node = slurm ? number_in(environment, "SLURM_NODEID", 0) : host_of(seat.rank, p.slots);
  begin.nodes = slurm ? number_in(environment, "SLURM_STEP_NUM_NODES", 1) : std::max(1, int(p.slots.size()));
  begin.first_rank = seat.rank - seat.local_rank;
  begin.slots = seat.on_this_machine;
  begin.world = seat.world;
  apply({.begin = begin,
         .local_rank = seat.local_rank,
         .address = address_of(p, environment),
         .port = p.port,
         .run_id = p.run_id,
         .role = p.role},
        environment);
}

Whereabouts whereabouts_of(int rank, std::string_view host, const Seating& seating) {
  Whereabouts out{.rank = rank, .host = std::string(host)};
  int by_order = -1, local_rank = rank;
  if (seating.in_order && seating.hosts.empty() && seating.per_node > 0) {
    by_order = rank / seating.per_node;
    local_rank = rank % seating.per_node;
  }
  for (std::size_t i = 0; i < seating.hosts.size(); ++i) {
    const int slots = int(seating.hosts[i].slots.size());
    if (seating.hosts[i].name == host) out.node = int(i);
    if (!seating.in_order || by_order >= 0) continue;
    if (local_rank < slots)
      by_order = int(i);
    else
      local_rank -= slots;
  }
  if (out.node < 0) out.node = by_order;
  if (by_order >= 0 && out.node == by_order) out.local_rank = local_rank;
  if (host.empty() && out.node >= 0 && !seating.hosts.empty())
    out.host = seating.hosts[std::size_t(out.node)].name;
  return out;
}

std::string first_host(std::string_view list) {
  std::string out;
  bool within = false, passed = false;  // brackets, and what follows the first number in them
  for (const char c : list) {
    if (c == ',' && !within) break;
    if (c == ']') within = passed = false;
    passed = passed || (within && (c == ',' || c == '-'));
    if (c != '[' && c != ']' && !passed) out += c;
    within = within || c == '[';
  }
  return out;
}

}  // namespace weft::launch
