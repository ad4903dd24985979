// The one machine of a process: its memory with the shadow, its lanes, and what runs on it now. For the
// emulator's own sources.
#pragma once

#include <sys/mman.h>

#include <array>
#include <map>
#include <set>

#include "tests/support/gpu/emulated.h"
#include "tests/support/gpu/products.h"

namespace emulated {

// Not a multiple of a page or of what caches are divided by: the tops of all stacks would share a few places.
inline constexpr std::size_t stack_bytes = (64 << 10) + 13 * 64, most_threads = 1024, grain = 2;
inline constexpr std::size_t device_bytes = std::size_t(1) << 36, gap = 512;

/// Address space that costs nothing before it is touched.
std::byte* reserve(std::size_t bytes);

/// Who did something, and between which barriers.
struct Stamp {
  std::uint32_t operation = 0, block = 0;
  std::uint16_t thread = 0, several = 0;  // several: threads of one warp, warps, blocks; or atomics
  std::uint16_t barrier = 0, warp_barrier = 0;
};
enum Several : std::uint16_t { one, lanes, warps, blocks, atomics };
struct Cell {
  Stamp written, read;
};
enum State : std::uint8_t { alive = 1, filled = 2, in_flight = 4, released = 8 };

/// Memory, and for every two bytes of it a state and the last accesses.
struct Shadowed {
  explicit Shadowed(std::size_t size)
      : bytes(size),
        base(reserve(size)),
        cells(reinterpret_cast<Cell*>(reserve(size / grain * sizeof(Cell)))),
        states(reinterpret_cast<std::uint8_t*>(reserve(size / grain))) {}
  bool holds(const void* at) const { return std::size_t(static_cast<const std::byte*>(at) - base) < bytes; }
  std::size_t grain_of(const void* at) const {
    return std::size_t(static_cast<const std::byte*>(at) - base) / grain;
  }
  std::size_t bytes;
  std::byte* base;
  Cell* cells;
  std::uint8_t* states;
};

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
  bool has_products = false;  // in this block
  unsigned holders = 0;       // in this block: behind the last one that holds something
  std::vector<std::uint16_t> shown =
      std::vector<std::uint16_t>(shared.bytes / grain);  // how often who wrote it had
  struct Operation {
    std::uint32_t stream, position;
  };
  std::vector<Operation> operations{{0, 0}};
  std::uint32_t operation = 0;
  std::uint32_t known_before = 0;  // an operation that the clock is known to have behind it
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

}  // namespace emulated
