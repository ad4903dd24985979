// Who wrote and read every two bytes of the device's memory, and whether that had an order.
#include <algorithm>
#include <cstring>

#include "tests/support/gpu/machine.h"

extern "C" char __executable_start, end;  // the program's own image: constants of kernels lie in it

namespace emulated {
namespace {

Machine& m = machine();

std::string told(const Stamp& who) {
  if (who.block == ~0U) return "an operation of stream " + std::to_string(m.operations[who.operation].stream);
  if (who.several >= lanes && who.several <= blocks) return "several threads";
  return "thread " + std::to_string(who.thread) + " of block " + std::to_string(who.block);
}

Stamp now() {
  Stamp out{m.operation, ~0U, 0, one, 0, 0};
  if (!m.lane) return out;
  out.block = m.index.x;
  out.thread = std::uint16_t(m.lane->id);
  out.barrier = m.barriers;
  out.warp_barrier = m.lane->warp_barrier;
  return out;
}

/// Whether what ran now comes after that operation. Neighbours mostly have the same one behind them.
bool ordered(const Stamp& old) {
  if (old.operation == m.known_before) return true;
  const Machine::Operation& before = m.operations[old.operation];
  const bool yes = before.stream < m.clock.size() && m.clock[before.stream] >= before.position;
  if (yes) m.known_before = old.operation;
  return yes;
}

/// Whether two accesses, one of them a write, have no order. Blocks have none among them, warps that of
/// __syncthreads, lanes that of __syncwarp too; operations that of streams and events.
bool race(const Stamp& old, const Stamp& mine, bool is_shared) {
  if (old.operation == 0) return false;
  if (old.operation != mine.operation) return !is_shared && !ordered(old);
  if (old.several == atomics && mine.several == atomics) return false;
  if (old.several == blocks) return true;
  if (old.block != mine.block) return !is_shared;
  if (old.barrier != mine.barrier) return false;
  if (old.several == warps) return true;
  if (old.several != lanes && old.thread == mine.thread) return false;
  return old.thread / 32 != mine.thread / 32 || old.warp_barrier == mine.warp_barrier;
}

void note_read(Stamp& last, const Stamp& mine, bool is_shared) {
  if (last.operation == mine.operation && last.block == mine.block && last.barrier == mine.barrier &&
      last.several >= warps)
    return;
  if (last.operation != mine.operation || (is_shared && last.block != mine.block)) {
    last = mine;
  } else if (last.block != mine.block) {
    last.several = blocks;
  } else if (last.several != blocks) {
    const bool same_warp = last.thread / 32 == mine.thread / 32;
    // Lanes that read before the last __syncwarp, or __syncthreads, are behind whatever these do.
    const bool behind = last.barrier != mine.barrier || (same_warp && last.warp_barrier != mine.warp_barrier);
    const bool others = last.thread != mine.thread || last.several == lanes;
    last = mine;
    if (others && !behind) last.several = same_warp ? lanes : warps;
  }
}

/// One access, as its bytes are looked at one after another.
struct Access {
  Shadowed& of;
  const void* at;
  Touch how;
  const void* pc;
  Stamp mine;
  bool is_shared, races;

  bool reads() const { return how == Touch::read; }
  std::string begun() const {
    const char* verb = reads() ? " reads " : how == Touch::release ? " frees " : " writes ";
    const auto byte = static_cast<const std::byte*>(at) - of.base;
    return told(mine) + verb +
           (is_shared ? "shared memory at byte " + std::to_string(byte) : std::string("device memory"));
  }
  void say(const std::string& what) const { report(begun() + what, pc); }
};

[[gnu::cold]] void say_race(const Access& access, const Cell& cell, bool after_write) {
  const Stamp& other = after_write ? cell.written : cell.read;
  access.say(", which " + told(other) + (after_write ? " has written" : " has read") +
             (other.operation == access.mine.operation ? ", with no barrier between"
                                                       : ", with no order between their streams"));
}

inline void look_for_races(const Access& access, const Cell& cell) {
  const bool after_write = race(cell.written, access.mine, access.is_shared);
  if (after_write || (!access.reads() && race(cell.read, access.mine, access.is_shared)))
    say_race(access, cell, after_write);
}

/// What a cache would keep until the operation ends is moved once.
inline void count(const Access& access, const Cell& cell) {
  const std::uint32_t last = access.reads() ? cell.read.operation : cell.written.operation;
  const bool own = access.reads() && cell.written.operation == access.mine.operation;
  if (!access.is_shared && last != access.mine.operation && !own) m.meter.moved += grain;
}

/// Of what lives and was written, and of nothing else: the common case of check().
inline void note(const Access& access, std::size_t i) {
  Cell& cell = access.of.cells[i];
  look_for_races(access, cell);
  if (access.how != Touch::allocate && access.how != Touch::release) count(access, cell);
  if (access.reads())
    note_read(cell.read, access.mine, access.is_shared);
  else
    cell.written = access.mine;
}

/// False where the memory is not alive.
bool check(const Access& access, std::size_t i) {
  std::uint8_t& state = access.of.states[i];
  if (access.how != Touch::allocate && !(state & alive)) {
    access.say(state & released ? ", which was freed" : ", outside of what was allocated");
    return false;
  }
  if (access.reads() && !(state & filled)) access.say(", which nobody has written");
  if (state & in_flight) access.say(", to which an asynchronous copy is under way");
  if (access.races) note(access, i);
  if (access.how == Touch::write || access.how == Touch::atomic) state |= filled;
  if (access.how == Touch::allocate) state = alive;
  if (access.how == Touch::release) state = released;
  return true;
}

/// Neighbours in one access mostly have one past; then what becomes of the first becomes of them.
class Alike {
 public:
  explicit Alike(const Access& access) : access_(access) {}
  void note(std::size_t i) {
    Cell& cell = access_.of.cells[i];
    if (known_ && std::memcmp(&cell, &before_, sizeof cell) == 0) {
      cell = after_;
      m.meter.moved += moved_;
      return;
    }
    const std::uint64_t moved = m.meter.moved;
    before_ = cell;
    emulated::note(access_, i);
    after_ = cell;
    moved_ = m.meter.moved - moved;
    known_ = true;
  }

 private:
  const Access& access_;
  Cell before_, after_;
  std::uint64_t moved_ = 0;
  bool known_ = false;
};

bool check_all(Shadowed& of, const Access& access, std::size_t bytes) {
  const std::size_t from = of.grain_of(access.at);
  const auto byte = std::size_t(static_cast<const std::byte*>(access.at) - of.base);
  const std::size_t to = (byte + bytes + grain - 1) / grain;
  const bool common = access.races && access.how <= Touch::write;
  Alike neighbours(access);
  for (std::size_t i = from; i < to; ++i)
    if (common && of.states[i] == (alive | filled))
      neighbours.note(i);
    else if (!check(access, i))
      return false;
  return true;
}

/// Products see it when who writes it has shown it once more.
void note_unshown(const void* at, std::size_t bytes) {
  const std::size_t first = m.shared.grain_of(at);
  for (std::size_t i = 0; i < (bytes + grain - 1) / grain; ++i)
    m.shown[first + i] = std::uint16_t(m.held[m.lane->id].shown.size());
}

bool of_host(const void* at, bool writes) {
  const auto* p = static_cast<const char*>(at);
  if (!writes && p >= &__executable_start && p < &end) return true;
  auto it = m.host.upper_bound(static_cast<const std::byte*>(at));
  if (it == m.host.begin()) return false;
  --it;
  return static_cast<const std::byte*>(at) < it->first + it->second;
}

void set_in_flight(const void* at, bool flying) {
  const std::size_t first = m.shared.grain_of(at);
  for (std::size_t i = first; i < first + 16 / grain; ++i) {
    std::uint8_t& state = m.shared.states[i];
    state = std::uint8_t(flying ? state | in_flight : state & ~in_flight);
  }
}

}  // namespace

bool touch(const void* at, std::size_t bytes, Touch how, const void* pc) {
  if (bytes == 0) return true;
  if (m.lane) {
    ++m.meter.accesses;
    if (std::size_t(static_cast<const std::byte*>(at) - m.lane->stack) < stack_bytes) return true;
  }
  const bool is_shared = m.shared.holds(at);
  if (is_shared || m.device.holds(at)) {
    Shadowed& of = is_shared ? m.shared : m.device;
    // Neighbours in one grain may be two threads' bytes.
    Access access{of, at, how, pc, now(), is_shared, bytes > 1 || !m.lane};
    if (how == Touch::atomic) access.mine.several = atomics;
    if (is_shared && how == Touch::write) note_unshown(at, bytes);
    return check_all(of, access, bytes);
  }
  if (of_host(at, how != Touch::read)) return true;
  report("device work touches memory of the host", pc);
  return false;
}

void must_be_aligned(const void* at, std::size_t bytes, const void* pc) {
  if (reinterpret_cast<std::uintptr_t>(at) % bytes != 0)
    report("an access of " + std::to_string(bytes) + " bytes is not aligned", pc);
}

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

namespace {

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
  const std::size_t grains = size / grain, first = m.device.grain_of(at);
  forget(at, size);
  forget(m.device.cells + first, grains * sizeof(Cell));
  forget(m.device.states + first, grains);
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
