// What mpirun's and srun's processes of any program find under torchrun's names.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/launch/environment.h"
#include "weft/launch/hostfile.h"
#include "weft/launch/message.h"

namespace weft::launch {

/// What the launcher knows; the rest is for each process to find in what started it.
struct Placement {
  std::string address;  // of rank 0's host; empty: the first of the Slurm step
  int port = 0;
  int restarts = 0, max_restarts = 0;
  std::string run_id, role;
  std::vector<int> slots;  // of each host, in the order of ranks; empty: Slurm says
};
constexpr int placement_words = 7;
std::vector<std::string> to_words(const Placement& placement);
/// Fails with Kind::usage on what to_words() did not write.
Placement read_placement(std::span<const std::string_view> words);

/// Sets torchrun's contract by the seat that the launcher left. Fails where there is none.
void apply(const Placement& placement, Environment& environment);

/// How ranks sit on hosts, as far as the launcher knows.
struct Seating {
  std::vector<Host> hosts;  // in order; empty: Slurm chose them
  int per_node = 0;         // then; 0: nobody knows
  bool in_order = true;     // hosts are filled one after the other
};
/// Where a rank sits that says nothing itself, on the host that was named for it, "" for none.
Whereabouts whereabouts_of(int rank, std::string_view host, const Seating& seating);

/// The first of Slurm's "gpu[03-05,7],x1": gpu03; "" of nothing.
std::string first_host(std::string_view list);

}  // namespace weft::launch
