// The one machine of a process: its memory with the shadow, its lanes, and what runs on it now. For the
// emulator's own sources.
#pragma once

#include <array>
#include <map>
#include <set>

#include "tests/support/gpu/emulated.h"
#include "tests/support/gpu/products.h"
#include "tests/support/gpu/shadow.h"

namespace emulated {

// Not a multiple of a page or of what caches are divided by: the tops of all stacks would share a few places.
inline constexpr std::size_t stack_bytes = (64 << 10) + 13 * 64;
inline constexpr std::size_t device_bytes = std::size_t(1) << 36, gap = 512;

struct Copy {
  void* to;
  const void* from;
  bool wanted;
};

/// One thread of the device: a fiber. What changes at every meeting is one line of a cache.
struct alignas(64) Lane {
  void* sp = nullptr;
  std::byte* stack = nullptr;
  const void* in = nullptr;
  void* out = nullptr;
  Place place{};  // waited for, where, with whom
  unsigned id = 0, mask = 0;
  enum : std::uint16_t { ready, waiting, ended } state = ended;
  std::uint16_t warp_barrier = 0, turn = 0;  // turn: its place in the order of the block's threads
  std::uint16_t shows = 0;                   // how often it has shown what it has written
};
/// What few threads have.
struct Held {
  std::vector<std::vector<Copy>> copies{1};  // by group, the last one is open
  std::vector<std::uint16_t> shown;          // barriers before each time that it showed what it has written
};

/// A set of threads.
struct Turns {
  std::array<std::uint64_t, most_threads / 64> words{};
  void insert(unsigned turn) { words[turn / 64] |= std::uint64_t(1) << turn % 64; }
  void erase(unsigned turn) { words[turn / 64] &= ~(std::uint64_t(1) << turn % 64); }
  /// The first one behind `turn`, or else from the beginning; most_threads where there is none.
  unsigned after(unsigned turn) const;
};

struct Machine {
  Shadowed device{device_bytes}, shared{1 << 18};
  std::size_t shared_size = 0, device_used = gap;
  std::map<std::size_t, std::size_t> free_room;  // below device_used: where, and how much
  std::byte* stacks = reserve(stack_bytes * most_threads);
  std::array<Lane, most_threads> lanes;
  std::array<Held, most_threads> held;
  Lane* lane = nullptr;  // that runs now
  void* scheduler = nullptr;
  void (*kernel)(const void*) = nullptr;
  const void* arguments = nullptr;
  Dim index, size, grid;
  std::uint16_t barriers = 0;
  unsigned arrived = 0, living = 0, order = 0;
  int barrier_line = 0;                               // of those that have arrived
  std::vector<unsigned> turns;                        // the block's threads, in the order in which they run
  Turns may_run, at_barrier;                          // by turn
  std::array<unsigned, most_threads / 32> meeting{};  // lanes of each warp that wait for others of it
  std::array<Warp, most_threads / 32> warps;
  std::array<Right, 4> rights;  // those that products read last
  unsigned next_right = 0;      // where the next one is kept
  bool has_products = false;    // in this block
  bool idle = false;
  unsigned holders = 0;  // in this block: behind the last one that holds something
  std::vector<std::uint16_t> shown =
      std::vector<std::uint16_t>(shared.bytes / grain);  // how often who wrote it had
  struct Operation {
    std::uint32_t stream, position;
  };
  std::vector<Operation> operations{{0, 0}};
  std::uint32_t operation = 0;
  Moment moment = 1, operation_began = 1, block_began = 1;  // now, and what it lies in
  struct Began {
    Moment at;
    std::uint32_t operation;
  };
  std::vector<Began> history{{1, 0}};
  std::vector<Moment> blocks_began;  // of the kernel that ran last, in the order of block_turns
  std::vector<unsigned> block_turns;
  struct Span {
    Moment from, length;
  };
  std::array<Span, 4> known_before{};  // moments of operations that the clock is known to have behind it
  unsigned next_known = 0;             // where the next one is kept
  Clock clock;
  std::map<const std::byte*, std::size_t> host;  // pinned
  struct Finding {
    std::string what;
    const void* pc;
  };
  std::vector<Finding> found;
  std::set<std::string> said;
  Meter meter;
  std::recursive_mutex mutex;
};
Machine& machine();
/// Of the thread that runs.
Held& now_held();
bool of_host(const void* at, bool writes);

}  // namespace emulated
