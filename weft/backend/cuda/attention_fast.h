// Attention by tensor cores, where fits_tiles() says that it can be: by warps, or by warpgroups, which some
// GPUs have.
#pragma once

#include "weft/backend/cuda/attention_job.h"
#include "weft/backend/cuda/queue.h"

namespace weft::cuda {

struct FastForward {
  Attend attend;
  Heads o;
  Rows lse;       // [b, n, sq], an element a row
  Rows greatest;  // the same, or without data where nobody asks
};
void attend_fast(Queue& queue, const FastForward& job);
/// What attend_fast does, where there is a kernel for it.
bool warpgroups_attend(const Attend& job);
void attend_by_warpgroups(Queue& queue, const FastForward& job);

/// For both ways of going back. [b, n, sq]: delta = <dout, o>, and lse as a power of two, infinite where a
/// query sees nothing.
struct AttentionBackward {
  Attend attend;
  Heads dout, o, dq, dk, dv;
  Rows lse;
  float *delta, *power;
  float* dbias;            // [n, distances], or null
  float* lines = nullptr;  // attention_lines.h, where tiles give that
  bool accumulate;
  std::int64_t tasks;  // of warps
};
/// Gradients of queries, keys and values, and of what is added where there are lines; delta and power are
/// there.
void attend_backward_fast(Queue& queue, const AttentionBackward& job);
/// The same but for lines, of heads that fit into such a width (attention_tiles.h).
template <int d, int dv>
void attend_backward_by_tiles(Queue& queue, const AttentionBackward& job);
/// What attend_backward_fast does, where there are kernels for it.
bool warpgroups_attend_backward(const Attend& job);
void attend_backward_by_warpgroups(Queue& queue, const AttentionBackward& job);

__device__ __forceinline__ void put_sum(const Heads& to, std::int64_t at, float x, bool accumulate) {
  put(to.one, at, accumulate ? x + get(to.one, at) : x);
}

}  // namespace weft::cuda
