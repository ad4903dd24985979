// Copies that a thread does not wait for.
#include <cstring>

#include "tests/support/gpu/machine.h"

namespace emulated {
namespace {

Machine& m = machine();

void set_in_flight(const void* at, bool flying) {
  const std::size_t first = m.shared.grain_of(at);
  for (std::size_t i = first; i < first + 16 / grain; ++i) {
    std::uint8_t& state = m.shared.states[i];
    state = std::uint8_t(flying ? state | in_flight : state & ~in_flight);
  }
}

}  // namespace

// The copy may happen at any time from here to the wait: memory is written now and, in truth, then.
void copy_async(void* to, const void* from, bool wanted) {
  must_be_aligned(to, 16, __builtin_return_address(0));
  must_be_aligned(from, 16, __builtin_return_address(0));
  if (!touch(to, 16, Touch::write, __builtin_return_address(0))) return;
  set_in_flight(to, true);
  std::memset(to, 0xFF, 16);
  if (wanted) touch(from, 16, Touch::read, __builtin_return_address(0));
  now_held().copies.back().push_back({to, from, wanted});
}

void commit_copies() { now_held().copies.emplace_back(); }

void wait_copies(int groups_left) {
  auto& groups = now_held().copies;
  while (int(groups.size()) - 1 > groups_left) {
    for (const Copy& copy : groups.front()) {
      set_in_flight(copy.to, false);
      if (!touch(copy.to, 16, Touch::write)) continue;
      if (!copy.wanted)
        std::memset(copy.to, 0, 16);
      else if (m.device.holds(copy.from))
        std::memcpy(copy.to, copy.from, 16);
    }
    groups.erase(groups.begin());
  }
}

}  // namespace emulated
