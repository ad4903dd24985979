// Room of the device's memory, and what of the host's the device may touch.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "tests/support/gpu/machine.h"

extern "C" char __executable_start, end;  // the program's own image: constants of kernels lie in it

namespace emulated {

namespace {

Machine& m = machine();

constexpr std::size_t with_gap(std::size_t bytes) { return (bytes + 255) / 256 * 256 + gap; }

/// Makes zeros of it; whole pages by giving them to the system.
void forget(void* at, std::size_t bytes) {
  constexpr std::uintptr_t page = 4096;
  auto* const first = static_cast<std::byte*>(at);
  const std::size_t before = (page - reinterpret_cast<std::uintptr_t>(first) % page) % page;
  if (bytes < before + page) {
    std::memset(first, 0, bytes);
    return;
  }
  const std::size_t whole = (bytes - before) / page * page;
  std::memset(first, 0, before);
  madvise(first + before, whole, MADV_DONTNEED);
  std::memset(first + before + whole, 0, bytes - before - whole);
}

}  // namespace

bool of_host(const void* at, bool writes) {
  const auto* p = static_cast<const char*>(at);
  if (!writes && p >= &__executable_start && p < &end) return true;
  auto it = m.host.upper_bound(static_cast<const std::byte*>(at));
  if (it == m.host.begin()) return false;
  --it;
  return static_cast<const std::byte*>(at) < it->first + it->second;
}

void* find_room(std::size_t bytes) {
  const std::size_t wanted = with_gap(bytes);
  const auto found =
      std::ranges::find_if(m.free_room, [&](const auto& room) { return room.second >= wanted; });
  if (found != m.free_room.end()) {
    const auto [from, size] = *found;
    m.free_room.erase(found);
    if (size > wanted) m.free_room[from + wanted] = size - wanted;
    return m.device.base + from;
  }
  if (device_bytes - m.device_used < wanted) return nullptr;
  void* at = m.device.base + m.device_used;
  m.device_used += wanted;
  return at;
}

// What is left of it is as if nobody had been there.
void drop_room(void* at, std::size_t bytes) {
  std::size_t from = std::size_t(static_cast<std::byte*>(at) - m.device.base), size = with_gap(bytes);
  forget(at, size);
  for (Cell* cells : {m.device.cells, m.device.second_halves})
    forget(cells + from / word, size / word * sizeof(Cell));
  forget(m.device.states + from / grain, size / grain);
  auto next = m.free_room.lower_bound(from);
  if (next != m.free_room.end() && next->first == from + size) {
    size += next->second;
    next = m.free_room.erase(next);
  }
  if (next != m.free_room.begin() && std::prev(next)->first + std::prev(next)->second == from) {
    from = std::prev(next)->first;
    size += std::prev(next)->second;
  }
  m.free_room[from] = size;
}

bool on_device(const void* at) { return m.device.holds(at); }
bool pinned(const void* at) { return of_host(at, true); }

void let_in(const void* at, std::size_t bytes, bool in) {
  if (in)
    m.host[static_cast<const std::byte*>(at)] = bytes;
  else
    m.host.erase(static_cast<const std::byte*>(at));
}

}  // namespace emulated
