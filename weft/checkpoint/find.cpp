// No pointer file to go stale: the directories themselves say which step is the newest.
#include "weft/checkpoint/find.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <system_error>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/format.h"
#include "weft/checkpoint/agree.h"
#include "weft/checkpoint/step.h"

namespace weft::checkpoint {
namespace {

constexpr std::string_view prefix = "step_";

std::string step_name(std::int64_t step) {
  char name[32];
  std::snprintf(name, sizeof name, "step_%08lld", static_cast<long long>(step));
  return name;
}

std::optional<std::int64_t> step_of(const std::string& name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  std::int64_t step = -1;
  const char* const end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + prefix.size(), end, step);
  if (read.ec != std::errc() || read.ptr != end || step < 0 || step_name(step) != name) return std::nullopt;
  return step;
}

// The first word is the step, or "-"; then a notice a line.
std::string packed(const FoundStep& found) {
  std::string out = found.step ? std::to_string(found.step->step) : "-";
  for (const std::string& notice : found.notices) out += "\n" + notice;
  return out;
}

FoundStep unpacked(const std::filesystem::path& root, const std::string& from) {
  const auto lines = split(from, '\n');
  FoundStep out;
  if (lines[0] != "-") {
    const std::int64_t step = std::stoll(std::string(lines[0]));
    out.step = StepDirectory{step, step_directory(root, step)};
  }
  out.notices.assign(lines.begin() + 1, lines.end());
  return out;
}

}  // namespace

std::filesystem::path step_directory(const std::filesystem::path& root, std::int64_t step) {
  return root / step_name(step);
}

std::vector<StepDirectory> step_directories(const std::filesystem::path& root) {
  std::vector<StepDirectory> out;
  std::error_code error;
  std::filesystem::directory_iterator entry(root, error);
  if (error == std::errc::no_such_file_or_directory) return out;
  if (error) fail_errno("list", root, error.value());
  for (; entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    std::error_code unknown;
    const auto step = step_of(entry->path().filename().string());
    if (step && entry->is_directory(unknown)) out.push_back({*step, entry->path()});
  }
  if (error) fail_errno("list", root, error.value());
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  return out;
}

FoundStep find_latest(const std::filesystem::path& root, std::int64_t below) {
  FoundStep found;
  auto steps = step_directories(root);
  if (steps.empty()) found.notices.push_back(text(root.string(), ": holds no directory of a step"));
  std::reverse(steps.begin(), steps.end());
  for (const StepDirectory& candidate : steps) {
    if (candidate.step >= below) continue;
    try {
      (void)OpenStep(candidate.path);
      found.step = candidate;
      return found;
    } catch (const Error& error) {
      found.notices.push_back(text("step ", candidate.step, " is passed over: ", error.what()));
    }
  }
  return found;
}

FoundStep agree_on_latest(const std::filesystem::path& root, std::int64_t below, Communicator& world) {
  const auto said = agree(world, [&]() -> std::string {
    return world.rank() == 0 ? packed(find_latest(root, below)) : std::string();
  });
  return unpacked(root, said.front());
}

StepDirectory latest(const std::filesystem::path& root, std::vector<std::string>& notices) {
  FoundStep found = find_latest(root);
  if (!found.step) {
    fail(Kind::data, root.string(), ": no complete checkpoint: ", join(found.notices, "; "));
  }
  notices.insert(notices.end(), found.notices.begin(), found.notices.end());
  return *found.step;
}

}  // namespace weft::checkpoint
