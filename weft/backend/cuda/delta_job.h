// The gated delta rule and state spaces: where operands lie, and what a step's numbers say.
#pragma once

#include "weft/backend/cuda/attention_job.h"
#include "weft/backend/cuda/queue.h"
#include "weft/backend/cuda/space.h"

namespace weft::cuda {

struct DeltaJob {
  Heads q, k, v;
  Heads o;                            // or its gradient
  Heads decay, rate;                  // [s, b, g, r]; a state space has no rates,
  const float *speed, *shift, *skip;  // [g, r]; and it alone has skips
  float scale;
  int steps, batch, groups, heads, d, parts;
  bool corrects;
  std::int64_t blocks;
  // Backward: steps of a segment, how many there are, and states [blocks, segments - 1, rows, part] before
  // each but the first; where one was gone over stands the slope there instead.
  int segment, segments;
  float* begins;
  float* memory;  // forward: [b, g, r, d, d'], the first and then the last; none where it begins with zeros

  __device__ __forceinline__ int eights() const { return (d + 7) / 8; }
};
/// Fails where keys are too wide; who says so is `name`.
DeltaJob delta_job(const char* name, const Tensor& o, const DeltaIn& in);

/// Of numbers [s, b, g, r].
Heads numbers_at(const Tensor& t);

/// Which of a kernel's forms: so many rows has a block's memory room for, and whether what is written
/// corrects what is there, or adds to it.
template <int wide, bool corrects>
struct Form {};
/// f(Form<..>) with the fewest rows that do.
template <class F>
void with_form(const DeltaJob& job, F f) {
  constexpr int most = most_delta_channels;
  if (job.corrects)
    job.d <= most / 2 ? f(Form<most / 2, true>{}) : f(Form<most, true>{});
  else
    job.d <= most / 2 ? f(Form<most / 2, false>{}) : f(Form<most, false>{});
}

/// What a block has.
struct DeltaPlace {
  int b, g, r, part;
};
__device__ __forceinline__ DeltaPlace delta_place(const DeltaJob& job, int block) {
  const int head = block / job.parts, group = head / job.heads, b = group / job.groups;
  return {b, group - b * job.groups, head - group * job.heads, block - head * job.parts};
}

/// Where rows of a chunk begin, and their eights.
struct Corner {
  int step, column, eights;
};

__device__ __forceinline__ float sigmoid(float x) { return 1 / (1 + expf(-x)); }
__device__ __forceinline__ float softplus(float x) { return x > 20 ? x : log1pf(expf(x)); }

/// a = e^log, and how much of what it writes a step does: b, or in a state space t.
struct DeltaNumbers {
  float raw, slowness, rate;
  __device__ __forceinline__ float log() const { return -slowness * softplus(raw); }
};
__device__ __forceinline__ DeltaNumbers numbers_of(const DeltaJob& job, const DeltaPlace& at, int step) {
  const int head = at.g * job.heads + at.r;
  const float raw = get(job.decay.one, job.decay.at(step, at.b, at.g, at.r)) + job.shift[head];
  const float rate =
      job.corrects ? sigmoid(get(job.rate.one, job.rate.at(step, at.b, at.g, at.r))) : softplus(raw);
  return {raw, expf(job.speed[head]), rate};
}

/// A block's matrix in memory, where it has so many.
struct Nth {
  int number, of;
};
__device__ __forceinline__ float* matrix_place(float* all, const DeltaJob& job, const Nth& nth) {
  const std::int64_t before = std::int64_t(blockIdx.x) * nth.of + nth.number;
  return all + before * (job.eights() * 8) * delta_part;
}
/// Of the state before a segment, or the slope.
__device__ __forceinline__ float* segment_place(const DeltaJob& job, int segment) {
  return matrix_place(job.begins, job, {segment - 1, job.segments - 1});
}

/// A state space forward by tensor cores, where scans_by_tiles() says that they can.
void scan_by_tiles(Queue& queue, const DeltaJob& job);
/// Fills job.begins for its way back, in an order of its own.
void keep_scanned(Queue& queue, const DeltaJob& job);

/// Fills job.begins, where there are several segments.
void keep_states(Queue& queue, const DeltaJob& job);

}  // namespace weft::cuda
