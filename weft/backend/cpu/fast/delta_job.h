// What the loops of the delta rule and of state spaces are given, those of every instruction set: plain
// numbers and addresses, nothing that owns.
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
  // Of all steps and the task's heads, [heads, numbers], and for each head.
  std::int64_t raw = 0, rate = 0, log_keep = 0, slowness = 0, skip = 0;
  std::int64_t ddecay = 0, drate = 0, dspeed = 0;
  // A chunk's rows, and products of them.
  std::int64_t q = 0, k = 0, k_turned = 0, kk = 0, qk = 0, fade = 0, n = 0, p = 0;
  std::int64_t missing = 0, written = 0, o = 0, factors = 0;
  std::int64_t memory = 0;  // of each head
  // Backward: memory and missing of every chunk and head instead, and slopes.
  std::int64_t dmemory = 0, memory_turned = 0, dmemory_turned = 0, written_turned = 0;
  std::int64_t dout = 0, y = 0, by_k = 0, by_q = 0, by_end = 0, dk = 0, dq = 0;
  // A state space goes backward head by head: memory is one head's, of every chunk and turned, and q, k, qk,
  // dq, dk and pairs, sums over heads, are of all chunks.
  std::int64_t pairs = 0;
  std::int64_t kept_step = 0;  // floats from q or k of one step to the next's, where those of all are kept
  std::int64_t floats = 0;
};

/// q and k [s, b, g, d], v, o and dout [s, b, g, r, d']; backward writes dq, dk and dv.
struct DeltaJob {
  std::int64_t s = 0, b = 0, g = 0, r = 0, d = 0, d_value = 0;
  bool corrects = true;    // else it is a state space
  std::int64_t heads = 0;  // of a task, at most
  AttentionRows q, k, v, o, dout, dq, dk, dv;
  float scale = 1;
  std::int64_t step = 0, step_value = 0;  // floats from one copied row of d, or of d', to the next
  std::int64_t rows = 0;                  // of dq, and of dk, that a state space keeps
  std::int64_t numbers = 0;               // floats from the numbers of one head to those of the next
  DeltaPlaces places;
};
/// Some heads, from the group's `head` on, of one group of one sequence.
struct DeltaTask {
  std::int64_t sequence = 0, group = 0, head = 0, heads = 0;
};

/// raw (decay + shift), rate (before its sigmoid), slowness (e^speed) and skip are in the workspace; backward
/// leaves there ddecay, drate and the terms of dspeed. Forward begins with the memories that are there, and
/// leaves the last. A state space has no rates; its drate are the terms of
/// dskip, and dq and dk stay in the workspace, [2, rows, step], for state_give to write.
struct DeltaLoops {
  void (*forward)(const DeltaJob& job, const DeltaTask& task, float* workspace);
  void (*backward)(const DeltaJob& job, const DeltaTask& task, float* workspace);
  void (*state_forward)(const DeltaJob& job, const DeltaTask& task, float* workspace);
  void (*state_backward)(const DeltaJob& job, const DeltaTask& task, float* workspace);
  void (*state_give)(const DeltaJob& job, const DeltaTask& task, const float* dq);
};

}  // namespace weft::fast
