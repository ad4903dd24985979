// The gated delta rule and state spaces backward, what a block has of it and what becomes of that.
#pragma once

#include "weft/backend/cuda/delta_job.h"

namespace weft::cuda {

struct DeltaBackward {
  DeltaJob is;  // o: its gradient
  Heads dv;
  int now;                      // the segment
  int chunks;                   // of it, by tensor cores
  float* states;                // [blocks, stretches of a segment, rows, part]: those before each
  float *dq, *dk;               // [r, parts, steps of a segment, b, g, d]: each head's and part's
  float *dlog, *drate, *dskip;  // [parts, g, r, b, s]: of log a, of b or t, and of the skip

  __device__ __forceinline__ int first() const { return now * is.segment; }
  __device__ __forceinline__ int last() const {  // behind the last
    return first() + is.segment < is.steps ? first() + is.segment : is.steps;
  }
  __device__ __forceinline__ float* state_before(int step) const {
    return matrix_place(states, is, {(step - first()) / delta_stretch, is.segment / delta_stretch});
  }
  __device__ __forceinline__ std::int64_t line(const DeltaPlace& at, int step) const {
    const std::int64_t steps = std::int64_t(at.r * is.parts + at.part) * is.segment + (step - first());
    return ((steps * is.batch + at.b) * is.groups + at.g) * is.d;
  }
  __device__ __forceinline__ std::int64_t number(const DeltaPlace& at, int step) const {
    const std::int64_t heads = std::int64_t(at.part) * is.groups * is.heads + at.g * is.heads + at.r;
    return (heads * is.batch + at.b) * is.steps + step;
  }
};

/// A segment by tensor cores, where scans_by_tiles() says that they can.
void scan_backward_by_tiles(Queue& queue, DeltaBackward job);
/// Its states, before each chunk; and in their place the slopes behind each, which adds to dlog what all of a
/// chunk's steps share.
void slopes_of_chunks(Queue& queue, const DeltaBackward& job);
void keep_chunks(Queue& queue, const DeltaBackward& job);

/// What heads and parts have of a segment's rows, in order.
void add_lines_of_delta(Queue& queue, const DeltaBackward& job, const DeltaGrads& grads, const Tensor& lines);
/// What parts have of steps' numbers, and of what those come of.
void add_numbers_of_delta(Queue& queue, const DeltaBackward& job, const DeltaGrads& grads);

}  // namespace weft::cuda
