// How much memory this process may still take, and who says so.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

namespace weft {

/// Where the kernel tells; tests tell something else.
struct MemorySources {
  std::filesystem::path proc = "/proc", cgroups = "/sys/fs/cgroup";
};

struct FreeMemory {
  std::int64_t bytes = 0;
  std::string by;  // "the machine", "the control group", "ulimit -v", "ulimit -d"; of a GPU "cuda:0"
  std::int64_t on_disk = std::numeric_limits<std::int64_t>::max();  // where states are to lie, if they are
};

/// The least of what the machine has, what the control groups above this process leave, and the limits on its
/// address space. What cannot be read limits nothing.
FreeMemory free_memory(const MemorySources& sources = {});

/// What is left on the disk of a directory, which may have to be made. One that tells nothing has enough.
std::int64_t free_disk(const std::filesystem::path& directory);

}  // namespace weft
