// How much memory this process may still take, and who says so.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace weft {

/// Where the kernel tells; tests tell something else.
struct MemorySources {
  std::filesystem::path proc = "/proc", cgroups = "/sys/fs/cgroup";
};

struct FreeMemory {
  std::int64_t bytes = 0;
  std::string by;  // "the machine", "the control group", "ulimit -v", "ulimit -d"; of a GPU "cuda:0"
};

/// The least of what the machine has, what the control groups above this process leave, and the limits on its
/// address space. What cannot be read limits nothing.
FreeMemory free_memory(const MemorySources& sources = {});

}  // namespace weft
