// The directories of steps under a checkpoint root, and the newest that is complete.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "weft/comm/communicator.h"

namespace weft::checkpoint {

inline constexpr std::int64_t no_step = std::numeric_limits<std::int64_t>::max();

struct StepDirectory {
  std::int64_t step = 0;
  std::filesystem::path path;
};

/// root/step_00000100
std::filesystem::path step_directory(const std::filesystem::path& root, std::int64_t step);

/// Every directory of such a name, complete or not, oldest first. A root that does not exist has none.
std::vector<StepDirectory> step_directories(const std::filesystem::path& root);

/// `step` is empty where no step is complete; `notices` say what was passed over, or that nothing was there.
struct FoundStep {
  std::optional<StepDirectory> step;
  std::vector<std::string> notices;
};
/// Scans from the newest step below `below` on; mark, index, facts and sizes must be right. Tensors' bytes
/// are compared when they are loaded.
FoundStep find_latest(const std::filesystem::path& root, std::int64_t below = no_step);
/// The same, looked up by rank 0 and told to all.
FoundStep agree_on_latest(const std::filesystem::path& root, std::int64_t below, Communicator& world);

/// find_latest for those who need one: fails with Kind::data, saying what was found instead.
StepDirectory latest(const std::filesystem::path& root, std::vector<std::string>& notices);

}  // namespace weft::checkpoint
