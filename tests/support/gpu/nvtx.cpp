// A fake of NVTX: the names that threads gave to what they asked for.
#include <nvtx3/nvToolsExt.h>

#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "tests/support/gpu/emulated.h"

namespace {

struct Names {
  std::mutex mutex;
  std::map<std::thread::id, std::vector<std::string>> open;
  std::vector<std::string> begun;
};
Names& names() {
  static Names all;
  return all;
}

}  // namespace

std::vector<std::string> emulated::take_names() {
  const std::lock_guard lock(names().mutex);
  for (const auto& [thread, open] : names().open)
    if (!open.empty()) report("a name was begun and not ended: " + open.back());
  return std::exchange(names().begun, {});
}

extern "C" {
int nvtxRangePushA(const char* message) {
  const std::lock_guard lock(names().mutex);
  std::vector<std::string>& open = names().open[std::this_thread::get_id()];
  open.push_back(open.empty() ? message : open.back() + " > " + message);
  names().begun.push_back(open.back());
  return int(open.size()) - 1;
}
int nvtxRangePop() {
  const std::lock_guard lock(names().mutex);
  std::vector<std::string>& open = names().open[std::this_thread::get_id()];
  if (open.empty()) {
    emulated::report("a name was ended that was not begun");
    return -1;
  }
  open.pop_back();
  return int(open.size());
}
}
