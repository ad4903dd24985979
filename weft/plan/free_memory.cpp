// Reads MemAvailable, the limits of control groups of both versions, and the limits of the process.
#include "weft/plan/free_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>

namespace weft {
namespace {

namespace fs = std::filesystem;

/// "max" and whatever is no number limit nothing.
std::optional<std::int64_t> number_in(const fs::path& file) {
  std::ifstream in(file);
  std::int64_t value = 0;
  return in >> value ? std::optional(value) : std::nullopt;
}

/// The first number behind a word that begins a line.
std::optional<std::int64_t> number_after(const fs::path& file, const std::string& word) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(word)) continue;
    std::istringstream rest(line.substr(word.size()));
    std::int64_t value = 0;
    return rest >> value ? std::optional(value) : std::nullopt;
  }
  return std::nullopt;
}

struct GroupFiles {
  const char *limit, *used, *reclaimable;
};
constexpr GroupFiles version_2{"memory.max", "memory.current", "inactive_file "},
    version_1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "};

/// Pages of files that nobody reads are counted as used and given away when they are needed.
std::optional<std::int64_t> left_in(const fs::path& group, const GroupFiles& files) {
  const auto limit = number_in(group / files.limit), used = number_in(group / files.used);
  if (!limit || !used) return std::nullopt;
  const std::int64_t reclaimable = number_after(group / "memory.stat", files.reclaimable).value_or(0);
  return std::max<std::int64_t>(0, *limit - *used + reclaimable);
}

/// Every group above limits too. In a container the root of what is mounted may be the process's own group.
std::optional<std::int64_t> left_in_all(const fs::path& root, std::string path, const GroupFiles& files) {
  std::optional<std::int64_t> least = left_in(root, files);
  while (path.size() > 1) {
    if (const auto left = left_in(root / path.substr(1), files))
      least = std::min(*left, least.value_or(*left));
    path.erase(path.find_last_of('/'));
  }
  return least;
}

std::optional<std::int64_t> left_in_groups(const MemorySources& from) {
  std::ifstream in(from.proc / "self/cgroup");
  std::optional<std::int64_t> least;
  const auto take = [&least](std::optional<std::int64_t> left) {
    if (left) least = std::min(*left, least.value_or(*left));
  };
  for (std::string line; std::getline(in, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1),
                      path = line.substr(second + 1);
    if (controllers.empty()) take(left_in_all(from.cgroups, path, version_2));
    if (controllers.find("memory") != std::string::npos)
      take(left_in_all(from.cgroups / "memory", path, version_1));
  }
  return least;
}

/// A limit of the process less what it has already; `column` of statm counts pages.
std::optional<std::int64_t> left_of_limit(const fs::path& proc, const std::string& limit, int column) {
  const auto most = number_after(proc / "self/limits", limit);
  std::ifstream in(proc / "self/statm");
  std::int64_t pages = 0;
  for (int i = 0; i <= column; ++i) in >> pages;
  if (!most || !in) return std::nullopt;
  return std::max<std::int64_t>(0, *most - pages * sysconf(_SC_PAGESIZE));
}

}  // namespace

FreeMemory free_memory(const MemorySources& from) {
  FreeMemory least{std::numeric_limits<std::int64_t>::max(), "the machine"};
  const auto take = [&least](std::optional<std::int64_t> bytes, std::string_view by) {
    if (bytes && *bytes < least.bytes) least = {*bytes, std::string(by)};
  };
  if (const auto available = number_after(from.proc / "meminfo", "MemAvailable:"))
    take(*available * 1024, "the machine");
  take(left_in_groups(from), "the control group");
  take(left_of_limit(from.proc, "Max address space", 0), "ulimit -v");
  take(left_of_limit(from.proc, "Max data size", 5), "ulimit -d");
  return least;
}

std::int64_t free_disk(const fs::path& directory) {
  std::error_code error;
  fs::path there = fs::absolute(directory, error);
  while (!fs::exists(there, error) && there.has_relative_path()) there = there.parent_path();
  const fs::space_info space = fs::space(there, error);
  return error ? std::numeric_limits<std::int64_t>::max() : std::int64_t(space.available);
}

}  // namespace weft
