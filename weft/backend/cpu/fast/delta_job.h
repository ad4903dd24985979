// What the delta rule's loops of every instruction set are given: plain numbers and addresses, nothing that
// owns.
#pragma once

#include "weft/backend/cpu/fast/attention_job.h"

namespace weft::fast {

/// Steps whose corrections are found together; a memory is read and written once for all of them. No result
/// depends on the number of threads, but bits do on this.
inline constexpr std::int64_t delta_chunk = 48;
/// Floats from one row of a [chunk, chunk] to the next: not a multiple of 128 bytes.
inline constexpr std::int64_t delta_square = delta_chunk % 32 == 0 ? delta_chunk + 16 : delta_chunk;

/// Where a task keeps its things, in floats from the start of its workspace.
struct DeltaPlaces {
  // Of all steps and the heads of the group, [r, numbers], and for each head.
  std::int64_t raw = 0, rate = 0, log_keep = 0, slowness = 0;
  std::int64_t ddecay = 0, drate = 0, dspeed = 0;
  // A chunk's rows, and products of them.
  std::int64_t q = 0, k = 0, k_turned = 0, kk = 0, qk = 0, fade = 0, n = 0, p = 0;
  std::int64_t missing = 0, written = 0, o = 0, factors = 0;
  std::int64_t memory = 0;  // of each head
  // Backward: memory and missing of every chunk and head instead, and slopes.
  std::int64_t dmemory = 0, memory_turned = 0, dmemory_turned = 0, written_turned = 0;
  std::int64_t dout = 0, y = 0, by_k = 0, by_q = 0, by_end = 0, dk = 0, dq = 0;
  std::int64_t floats = 0;
};

/// q and k [s, b, g, d], v, o and dout [s, b, g, r, d']; backward writes dq, dk and dv.
struct DeltaJob {
  std::int64_t s = 0, b = 0, g = 0, r = 0, d = 0, d_value = 0;
  AttentionRows q, k, v, o, dout, dq, dk, dv;
  float scale = 1;
  std::int64_t step = 0, step_value = 0;  // floats from one copied row of d, or of d', to the next
  std::int64_t numbers = 0;               // floats from the numbers of one head to those of the next
  DeltaPlaces places;
};
/// The heads of one group of one sequence.
struct DeltaTask {
  std::int64_t sequence = 0, group = 0;
};

/// raw (decay + shift), rate (before its sigmoid) and slowness (e^speed) are in the workspace; backward
/// leaves there ddecay, drate and the terms of dspeed.
struct DeltaLoops {
  void (*forward)(const DeltaJob& job, const DeltaTask& task, float* workspace);
  void (*backward)(const DeltaJob& job, const DeltaTask& task, float* workspace);
};

}  // namespace weft::fast
