// Hostfiles in both dialects, and DeepSpeed's words for taking some of their hosts and slots.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::launch {

struct Host {
  std::string name;
  std::vector<int> slots;  // their numbers, ascending
  bool operator==(const Host&) const = default;
};

/// Lines `HOST [slots=N] [max_slots=N]` (Open MPI, DeepSpeed) or `HOST:N` (Hydra, Intel), IPv6 in brackets;
/// `#` begins a comment. Anything else is an error with the file's name and the line's number.
std::vector<Host> read_hosts(std::string_view file_name, std::string_view content);

/// `NODE[:SLOT,SLOT…]` joined by `@`. Keeps the order of `hosts`; a host that is left without slots is gone.
std::vector<Host> included(std::vector<Host> hosts, std::string_view words);
std::vector<Host> excluded(std::vector<Host> hosts, std::string_view words);

/// What mpirun reads back: "HOST slots=N" a line.
std::string hostfile_of(const std::vector<Host>& hosts);

}  // namespace weft::launch
