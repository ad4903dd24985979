// The gated delta rule and state spaces backward, last: what blocks have of the same numbers is added up, in
// order.
#include "weft/backend/cuda/delta_slopes.h"
#include "weft/backend/cuda/pointwise.h"
#include "weft/backend/cuda/reduce.h"

namespace weft::cuda {
namespace {

/// Rows of dq, then of dk, each so many times in lines.
struct DeltaLines {
  Rows to[2], from[2];
  int lines;
  std::int64_t apart, chunks, total;  // apart: rows from line to line; chunks of eight
};

/// Every second block adds for keys.
__global__ void __launch_bounds__(256) add_lines(DeltaLines job) {
  const Rows &to = job.to[blockIdx.x % 2], &from = job.from[blockIdx.x % 2];
  const std::int64_t chunk = std::int64_t(blockIdx.x / 2) * blockDim.x + threadIdx.x;
  if (chunk >= job.total) return;
  const std::int64_t row = row_of(chunk, job.chunks, job.total), column = (chunk - row * job.chunks) * 8;
  Eight sum{};
#pragma unroll 1
  for (int line = 0; line < job.lines; ++line) {
    const Eight one = read(from, (line * job.apart + row) * to.width, column);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum.x[i] += one.x[i];
  }
  write(to, start_of(to, row), column, sum);
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
    // Who leaves nothing owes nothing for it; running sums (state_space_backward.cu) have some noise there,
    // and what it is multiplied with is large.
    if (numbers.log() < -30) dlog = 0;
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

void add_lines_of_delta(Queue& queue, const DeltaBackward& job, const DeltaGrads& grads,
                        const Tensor& lines) {
  const std::int64_t first = std::int64_t(job.now) * job.is.segment,
                     count = std::min<std::int64_t>(job.is.segment, job.is.steps - first);
  DeltaLines sums{{rows_of(grads.dq.slice(0, first, count)), rows_of(grads.dk.slice(0, first, count))},
                  {rows_of(lines.at(0, 0)), rows_of(lines.at(0, 1))}};
  sums.lines = int(lines.dim(1));
  sums.apart = lines.dim(2);
  sums.chunks = chunks_of(sums.to[0].width);
  sums.total = sums.to[0].count * sums.chunks;
  gpu::launch(queue, {2 * ((sums.total + 255) / 256), 256}, add_lines, sums);
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
