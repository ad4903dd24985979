// The gated delta rule and state spaces backward, last: what blocks have of the same numbers is added up, in
// order.
#include "weft/backend/cuda/delta_slopes.h"
#include "weft/backend/cuda/pointwise.h"
#include "weft/backend/cuda/reduce.h"

namespace weft::cuda {
namespace {

/// Rows of `to`, each so many times in `from`.
struct DeltaLines {
  Rows to, from;
  int lines;
  std::int64_t chunks, total;  // of eight
};

__global__ void __launch_bounds__(256) add_lines(DeltaLines job) {
  const std::int64_t chunk = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (chunk >= job.total) return;
  const std::int64_t row = row_of(chunk, job.chunks, job.total), column = (chunk - row * job.chunks) * 8;
  Eight sum{};
#pragma unroll 1
  for (int line = 0; line < job.lines; ++line) {
    const Eight one = read(job.from, start_of(job.from, line * job.to.count + row), column);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum.x[i] += one.x[i];
  }
  write(job.to, start_of(job.to, row), column, sum);
}

struct DeltaSums {
  DeltaBackward from;
  Heads ddecay, drate;
  float *dspeed, *dshift, *dskip;
};

/// A head a block.
__global__ void __launch_bounds__(256) add_numbers(DeltaSums job) {
  auto& scratch = gpu::shared<Scratch>();
  const DeltaJob& is = job.from.is;
  const int head = int(blockIdx.x), g = head / is.heads;
  float dspeed = 0, dshift = 0, dskip = 0;
  for (int at = int(threadIdx.x); at < is.batch * is.steps; at += int(blockDim.x)) {
    const int b = at / is.steps, step = at - b * is.steps;
    float dlog = 0, drate = 0;
    DeltaPlace place{b, g, head - g * is.heads, 0};
    for (; place.part < is.parts; ++place.part) {
      dlog += job.from.dlog[job.from.number(place, step)];
      drate += job.from.drate[job.from.number(place, step)];
      if (!is.corrects) dskip += job.from.dskip[job.from.number(place, step)];
    }
    const DeltaNumbers numbers = numbers_of(is, place, step);
    const float draw = ((is.corrects ? 0 : drate) - dlog * numbers.slowness) * sigmoid(numbers.raw);
    put(job.ddecay.one, job.ddecay.at(step, b, g, place.r), draw);
    if (is.corrects)
      put(job.drate.one, job.drate.at(step, b, g, place.r), drate * numbers.rate * (1 - numbers.rate));
    dshift += draw;
    dspeed += dlog * numbers.log();
  }
  dspeed = over_block(dspeed, scratch, 0, Plus{});
  dshift = over_block(dshift, scratch, 0, Plus{});
  dskip = over_block(dskip, scratch, 0, Plus{});
  if (threadIdx.x != 0) return;
  job.dspeed[head] += dspeed;
  job.dshift[head] += dshift;
  if (!is.corrects) job.dskip[head] += dskip;
}

}  // namespace

void add_lines_of_delta(Queue& queue, const Tensor& to, const Tensor& lines) {
  DeltaLines job{};
  job.to = rows_of(to);
  job.from = rows_of(lines);
  job.lines = int(lines.elements() / to.elements());
  job.chunks = chunks_of(job.to.width);
  job.total = job.to.count * job.chunks;
  gpu::launch(queue, {(job.total + 255) / 256, 256}, add_lines, job);
}

void add_numbers_of_delta(Queue& queue, const DeltaBackward& job, const DeltaGrads& grads) {
  const bool corrects = job.is.corrects;
  const DeltaSums sums{job,
                       numbers_at(grads.ddecay),
                       corrects ? numbers_at(grads.drate) : Heads{},
                       elements<float>(grads.dspeed),
                       elements<float>(grads.dshift),
                       corrects ? nullptr : elements<float>(grads.dskip)};
  gpu::launch(queue, {job.is.groups * job.is.heads, 256, sizeof(Scratch)}, add_numbers, sums);
}

}  // namespace weft::cuda
