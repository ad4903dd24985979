// Whether accesses have an order, and what is remembered of each.
#pragma once

#include "tests/support/gpu/machine.h"

namespace emulated {

/// Whether what runs now is known to come after the operation of that moment. Few operations wrote what one
/// reads.
inline bool known_ordered(const Machine& m, Moment moment) {
  for (const Machine::Span& span : m.known_before)
    if (moment - span.from < span.length) return true;
  return false;
}
/// Whether it does, by the clock.
bool ordered(Machine& m, Moment moment);

/// What a thread does now, or an operation that is no kernel.
inline Stamp now(const Machine& m, Several several) {
  Stamp out{};
  out.several = unsigned(m.lane ? several : whole) & 7U;
  out.moment = m.moment & last_moment;
  if (!m.lane) return out;
  out.warp_barrier = m.lane->warp_barrier;
  out.thread = m.lane->id % most_threads;
  return out;
}

/// Whether two accesses of one operation, one of them a write, have no order. Blocks have none among them,
/// warps that of __syncthreads, lanes that of __syncwarp too.
inline bool race_within(const Machine& m, const Stamp& old, const Stamp& mine, bool is_shared) {
  if (old.several == atomics && mine.several == atomics) return false;
  if (old.several == blocks) return true;
  if (old.moment < m.block_began) return !is_shared;
  if (old.moment != mine.moment) return false;
  if (old.several == warps) return true;
  if (old.several != lanes && old.thread == mine.thread) return false;
  return old.thread / 32 != mine.thread / 32 || old.warp_barrier == mine.warp_barrier;
}

inline void note_read(const Machine& m, Stamp& last, const Stamp& mine, bool is_shared) {
  if (last.moment < (is_shared ? m.block_began : m.operation_began)) {
    last = mine;
  } else if (last.moment < m.block_began) {
    last.several = blocks;
  } else if (last.several != blocks && (last.moment != mine.moment || last.several < warps)) {
    const bool same_warp = last.thread / 32 == mine.thread / 32;
    // Lanes that read before the last __syncwarp, or __syncthreads, are behind whatever these do.
    const bool behind = last.moment != mine.moment || (same_warp && last.warp_barrier != mine.warp_barrier);
    const bool others = last.thread != mine.thread || last.several == lanes;
    last = mine;
    if (others && !behind) last.several = same_warp ? lanes : warps;
  }
}

/// Remembers an access. True: it moves bytes, and what a cache would keep until the operation ends is moved
/// once.
inline bool note(const Machine& m, Cell& cell, const Stamp& mine, bool reads, bool is_shared) {
  const bool again =
      cell.written.moment >= m.operation_began || (reads && cell.read.moment >= m.operation_began);
  if (reads)
    note_read(m, cell.read, mine, is_shared);
  else
    cell.written = mine;
  return !again && !is_shared;
}

}  // namespace emulated
