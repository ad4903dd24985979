// What is remembered of memory: of every two bytes a state, and who wrote and read them last, which is one
// cell for four bytes for as long as the two halves have one past.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace emulated {

inline constexpr std::size_t most_threads = 1024, grain = 2, word = 2 * grain;

/// Address space that costs nothing before it is touched.
std::byte* reserve(std::size_t bytes);

/// Grows with every operation, every block of one and every barrier of that, so that one number tells all
/// three apart. 0: before anything.
using Moment = std::uint64_t;
inline constexpr Moment last_moment = (Moment(1) << 35) - 1;

/// Who did something, and when.
struct Stamp {
  std::uint64_t warp_barrier : 16, several : 3, thread : 10, moment : 35;
};
static_assert(sizeof(Stamp) == 8 && most_threads <= 1 << 10);
/// Threads of one warp, warps, blocks; atomics; or an operation that is no kernel.
enum Several : std::uint8_t { one, lanes, warps, blocks, atomics, whole };

struct Cell {
  Stamp written{}, read{};
};
inline bool same(const Stamp& a, const Stamp& b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}
inline bool same(const Cell& a, const Cell& b) { return same(a.written, b.written) && same(a.read, b.read); }

/// split: of the word's halves each has a cell.
enum State : std::uint8_t { alive = 1, filled = 2, in_flight = 4, released = 8, split = 16 };

struct Shadowed {
  explicit Shadowed(std::size_t size)
      : bytes(size),
        base(reserve(size)),
        cells(reinterpret_cast<Cell*>(reserve(size / word * sizeof(Cell)))),
        second_halves(reinterpret_cast<Cell*>(reserve(size / word * sizeof(Cell)))),
        states(reinterpret_cast<std::uint8_t*>(reserve(size / grain))) {}
  std::size_t byte_of(const void* at) const { return std::size_t(static_cast<const std::byte*>(at) - base); }
  bool holds(const void* at) const { return byte_of(at) < bytes; }
  std::size_t grain_of(const void* at) const { return byte_of(at) / grain; }
  /// Of the i-th grain.
  Cell& cell(std::size_t i) {
    return (states[i] & split) && i % 2 == 1 ? second_halves[i / 2] : cells[i / 2];
  }
  std::size_t bytes;
  std::byte* base;
  Cell *cells, *second_halves;
  std::uint8_t* states;
};

}  // namespace emulated
