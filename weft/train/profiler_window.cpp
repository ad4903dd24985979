#include "weft/train/profiler_window.h"

#include <algorithm>
#include <utility>

#include "weft/base/error.h"

namespace weft {

ProfilerWindow::ProfilerWindow(const ProfileConfig& asked, Device& device, int rank)
    : asked_(asked), device_(device) {
  asked_.on = asked.on && std::ranges::find(asked.ranks, rank) != asked.ranks.end();
}

std::string ProfilerWindow::begin(std::int64_t first, std::int64_t last) {
  last_ = std::min(asked_.last, last);
  if (!asked_.on || (first <= asked_.last && last > asked_.after)) return "";
  return text("a profiler is shown nothing: steps ", asked_.after + 1, " to ", asked_.last,
              " are none of this run, which has ", first, " to ", last);
}

void ProfilerWindow::before(std::int64_t step) {
  if (!asked_.on || open_ || step <= asked_.after || step > last_) return;
  device_.synchronize();
  device_.begin_profile();
  device_.name_work(asked_.names);
  open_ = true;
}

void ProfilerWindow::after(std::int64_t step) {
  if (!open_ || step < last_) return;
  device_.synchronize();
  close();
}

void ProfilerWindow::close() noexcept {
  if (!std::exchange(open_, false)) return;
  device_.name_work(false);
  device_.end_profile();
}

}  // namespace weft
