// The mark goes first, durably: a power cut meanwhile leaves a step that nobody takes for complete.
#include "weft/checkpoint/keep.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "weft/base/error.h"
#include "weft/checkpoint/step.h"

namespace weft::checkpoint {
namespace {

bool has_mark(const StepDirectory& step) {
  std::error_code error;
  return std::filesystem::exists(step.path / complete_name, error);
}

bool complete(const StepDirectory& step) {
  try {
    (void)OpenStep(step.path);
    return true;
  } catch (const Error&) {
    return false;
  }
}

void remove(const StepDirectory& step, const FileSystem& files) {
  const auto mark = step.path / complete_name;
  if (files.remove(mark.c_str()) < 0 && errno != ENOENT) fail_errno("remove", mark, errno);
  sync_directory(step.path, files);
  std::error_code error;
  std::filesystem::remove_all(step.path, error);
  if (error) fail_errno("remove", step.path, error.value());
}

bool has(const std::vector<std::int64_t>& steps, std::int64_t step) {
  return std::find(steps.begin(), steps.end(), step) != steps.end();
}

std::vector<std::int64_t> best_of(std::span<const StepDirectory> complete, const KeepRules& keep) {
  std::vector<std::int64_t> out;
  for (const std::int64_t step : keep.ranked) {
    if (std::ssize(out) >= keep.best) break;
    if (std::any_of(complete.begin(), complete.end(), [&](const StepDirectory& s) { return s.step == step; }))
      out.push_back(step);
  }
  return out;
}

}  // namespace

std::vector<StepDirectory> surplus(std::span<const StepDirectory> complete, const KeepRules& keep) {
  if (keep.last < 1)
    fail(Kind::usage, "keep: the last ", keep.last, " checkpoints would be none, expected 1 or more");
  if (keep.every < 0) fail(Kind::usage, "keep: every ", keep.every, "th step, expected 0 or more");
  const auto last = static_cast<std::size_t>(keep.last);
  const std::vector<std::int64_t> best = best_of(complete, keep);
  std::vector<StepDirectory> out;
  for (std::size_t i = 0; i + last < complete.size(); ++i) {
    const std::int64_t step = complete[i].step;
    if (keep.every > 0 && step % keep.every == 0) continue;
    if (has(keep.also, step) || has(best, step)) continue;
    out.push_back(complete[i]);
  }
  return out;
}

std::vector<std::int64_t> prune(const std::filesystem::path& root, const KeepRules& keep,
                                const FileSystem& files) {
  std::vector<StepDirectory> whole;
  std::vector<StepDirectory> unfinished;
  for (const StepDirectory& step : step_directories(root)) {
    if (complete(step))
      whole.push_back(step);
    else if (!has_mark(step))
      unfinished.push_back(step);
  }
  std::vector<StepDirectory> doomed = surplus(whole, keep);
  for (const StepDirectory& step : unfinished)
    if (!whole.empty() && step.step < whole.back().step) doomed.push_back(step);
  std::vector<std::int64_t> out;
  for (const StepDirectory& step : doomed) {
    remove(step, files);
    out.push_back(step.step);
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace weft::checkpoint
