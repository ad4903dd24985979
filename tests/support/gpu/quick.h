// The common case of an access, in few instructions: a thread's, of memory that lives and was written, with
// an order that is known.
#pragma once

#include <cstring>

#include "tests/support/gpu/races.h"

namespace emulated {

/// False also where somebody has to look closer.
inline bool plainly_ordered(const Machine& m, const Stamp& old, const Stamp& mine, bool is_shared) {
  if (old.moment >= m.operation_began) return !race_within(m, old, mine, is_shared);
  return old.moment == 0 || is_shared || known_ordered(m, old.moment);
}
inline bool plainly_ordered(const Machine& m, const Cell& cell, const Stamp& mine, bool reads,
                            bool is_shared) {
  return plainly_ordered(m, cell.written, mine, is_shared) &&
         (reads || plainly_ordered(m, cell.read, mine, is_shared));
}

/// Of whole words. False: nothing was noted.
template <std::size_t bytes>
[[gnu::always_inline]] inline bool noted_words(Machine& m, Shadowed& of, std::size_t byte, bool reads,
                                               bool is_shared) {
  constexpr std::size_t words = bytes / word;
  if (byte % word != 0) return false;
  std::uint8_t* const states = of.states + byte / grain;
  // A write is also what fills memory.
  for (std::size_t i = 0; i < bytes / grain; ++i)
    if ((reads ? states[i] : states[i] | filled) != (alive | filled)) return false;
  Cell* const cells = of.cells + byte / word;
  const Stamp mine = now(m, one);
  bool alike = true;
  for (std::size_t i = 1; i < words; ++i) alike = alike && same(cells[i], cells[0]);
  for (std::size_t i = 0; i < (alike ? 1 : words); ++i)
    if (!plainly_ordered(m, cells[i], mine, reads, is_shared)) return false;
  for (std::size_t i = 0; i < words; ++i)
    m.meter.moved += note(m, cells[i], mine, reads, is_shared) ? word : 0;
  if (!reads) std::memset(states, alive | filled, bytes / grain);
  return true;
}
/// Of half a word that has a cell of its own.
inline bool noted_half(Machine& m, Shadowed& of, std::size_t byte, bool reads, bool is_shared) {
  const std::size_t i = byte / grain;
  if (byte % grain != 0 || of.states[i] != (alive | filled | split)) return false;
  Cell& cell = of.cell(i);
  const Stamp mine = now(m, one);
  if (!plainly_ordered(m, cell, mine, reads, is_shared)) return false;
  m.meter.moved += note(m, cell, mine, reads, is_shared) ? grain : 0;
  return true;
}

/// Of 2, 4, 8 or 16 bytes. False: nothing was noted.
template <Touch how, std::size_t bytes>
[[gnu::always_inline]] inline bool noted(Machine& m, const void* at) {
  static_assert(how == Touch::read || how == Touch::write);
  constexpr bool reads = how == Touch::read;
  const bool is_shared = m.shared.holds(at);
  Shadowed& of = is_shared ? m.shared : m.device;
  const std::size_t byte = of.byte_of(at);
  if (byte >= of.bytes) return false;
  bool done = false;
  if constexpr (bytes == grain)
    done = noted_half(m, of, byte, reads, is_shared);
  else
    done = noted_words<bytes>(m, of, byte, reads, is_shared);
  if (done && is_shared && !reads)
    for (std::size_t i = 0; i < bytes / grain; ++i) m.shown[byte / grain + i] = m.lane->shows;
  return done;
}

}  // namespace emulated
