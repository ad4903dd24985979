// State spaces backward in bf16, what goes step by step through a sequence: memories before chunks, from the
// first to the last, and their slopes from the last to the first (state_space_backward.cu). Each is a product
// a chunk.
#include "weft/backend/cuda/delta_slopes.h"
#include "weft/backend/cuda/reduce.h"
#include "weft/backend/cuda/state_tiles.h"

namespace weft::cuda {
namespace {

/// States on the way, of the same chunks: `count` of them, `every` so many steps from `first` on.
struct Sweep {
  DeltaJob is;
  int first, every, count, skipped;  // skipped: of the count, not kept, since it is empty
  float *from, *to;                  // from: where it begins, among the states before segments; null: empty
  int segment;
};
/// What a chunk's product is made of, rows and columns, of this one and of the next.
template <int d>
struct Swept {
  Tile<d> rows[2];
  Narrow<scan_chunk> columns[2];
  Split<scan_chunk> written;
  ChunkNumbers numbers[2];
  float whole[scan_threads / 32];  // on the way back: of the exponent over all steps, a warp's share
};
/// Keys and values, or queries and what comes from above.
struct Factors {
  const Heads &rows, &columns;
};

template <int d>
__device__ __forceinline__ void fetch_factors(Swept<d>& s, int now, const Factors& of, const Stretch& steps,
                                              int part) {
  fetch(s.rows[now], of.rows, steps);
  fetch_part(s.columns[now], of.columns, steps, part * delta_part);
  gpu::commit_copies();
}

template <int d>
__global__ void __launch_bounds__(scan_threads, 2) sweep(Sweep job) {
  auto& s = gpu::shared<Swept<d>>();
  const DeltaPlace at = delta_place(job.is, int(blockIdx.x));
  const int warp = int(threadIdx.x) / 32, last = job.first + (job.count - 1) * job.every;
  const HeadNumbers head = numbers_of_head(job.is, at);
  const auto ask = [&](int begin, int place) {
    fetch_factors(s, place, {job.is.k, job.is.v}, {begin, job.is.steps, at.b, at.g, at.r}, at.part);
  };
  OwnMemory<d> memory = {};
  if (job.from) fetch_memory<d>(memory, job.from, {int(blockIdx.x), job.segment - 1, job.is.segments - 1});
  if (job.first < last) ask(job.first, 0);
  if (warp == 0)
    find_numbers(s.numbers[0], head, ask_decays(job.is, at, job.first), job.is.steps - job.first);
#pragma unroll 1
  for (int first = job.first, now = 0;; first += scan_chunk, now = 1 - now) {
    const int number = (first - job.first) / job.every;
    if ((first - job.first) % job.every == 0 && number >= job.skipped)
      keep_memory<d>(job.to, {int(blockIdx.x), number - job.skipped, job.count - job.skipped}, memory);
    if (first == last) break;
    gpu::wait_copies<0>();
    __syncthreads();
    const int next = first + scan_chunk;
    if (next < last) ask(next, 1 - now);
    const float2 decays = warp == 0 ? ask_decays(job.is, at, next) : float2{};
    const ChunkNumbers& is = s.numbers[now];
    weigh_rows(s.written, s.columns[now], [&](int row) { return is.to_end(row) * is.time[row]; });
    __syncthreads();
    move_memory<d>(memory, is.kept(), s.rows[now], s.written);
    if (warp == 0) find_numbers(s.numbers[1 - now], head, decays, job.is.steps - next);
  }
}

void launch(Queue& queue, const Sweep& job) {
  with_channels(job.is, [&]<int d>(Channels<d>) {
    gpu::launch(queue, {job.is.blocks, scan_threads, sizeof(Swept<d>)}, sweep<d>, job);
  });
}

// ---- slopes on the way back
/// In the place of the memory before a chunk comes the slope behind it; what they have of each other is a
/// warp's share.
template <int d>
__device__ __forceinline__ float take_place(float* all, const OneOf& one, const OwnMemory<d>& slope) {
  OwnMemory<d> memory;
  fetch_memory<d>(memory, all, one);
  keep_memory<d>(all, one, slope);
  float sum = 0;
#pragma unroll
  for (int m = 0; m < d / 64; ++m)
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) sum += memory[m][n][i] * slope[m][n][i];
  return over_warp(sum, Plus{});
}

template <int d>
__global__ void __launch_bounds__(scan_threads, 2) sweep_back(DeltaBackward job) {
  auto& s = gpu::shared<Swept<d>>();
  const DeltaPlace at = delta_place(job.is, int(blockIdx.x));
  const HeadNumbers head = numbers_of_head(job.is, at);
  const int warp = int(threadIdx.x) / 32, l = int(threadIdx.x), between = job.is.segments - 1;  // segments
  const auto ask = [&](int begin, int place) {
    fetch_factors(s, place, {job.is.q, job.is.o}, {begin, job.is.steps, at.b, at.g, at.r}, at.part);
  };
  OwnMemory<d> slope = {};
  if (job.now < between) fetch_memory<d>(slope, job.is.begins, {int(blockIdx.x), job.now, between});
  int first = job.first() + (job.chunks - 1) * scan_chunk;
  ask(first, 0);
  if (warp == 0) find_numbers(s.numbers[0], head, ask_decays(job.is, at, first), job.is.steps - first);
#pragma unroll 1
  for (int now = 0; first >= job.first(); first -= scan_chunk, now = 1 - now) {
    gpu::wait_copies<0>();
    __syncthreads();
    const int next = first - scan_chunk;
    const bool more = next >= job.first();
    if (more) ask(next, 1 - now);
    const float2 decays = more && warp == 0 ? ask_decays(job.is, at, next) : float2{};
    const OneOf chunk{int(blockIdx.x), (first - job.first()) / scan_chunk, job.chunks};
    const float whole = take_place<d>(job.states, chunk, slope);
    if (l % 32 == 0) s.whole[warp] = whole;
    const ChunkNumbers& is = s.numbers[now];
    weigh_rows(s.written, s.columns[now], [&](int row) { return job.is.scale * is.from_start(row); });
    __syncthreads();
    if (l < scan_chunk && first + l < job.is.steps)
      job.dlog[job.number(at, first + l)] += is.kept() * (s.whole[0] + s.whole[1] + s.whole[2] + s.whole[3]);
    move_memory<d>(slope, is.kept(), s.rows[now], s.written);
    if (more && warp == 0) find_numbers(s.numbers[1 - now], head, decays, job.is.steps - next);
  }
  if (job.now > 0) keep_memory<d>(job.is.begins, {int(blockIdx.x), job.now - 1, between}, slope);
}

}  // namespace

void keep_scanned(Queue& queue, const DeltaJob& job) {
  if (job.segments > 1) launch(queue, {job, 0, job.segment, job.segments, 1, nullptr, job.begins, 0});
}

void keep_chunks(Queue& queue, const DeltaBackward& job) {
  launch(queue, {job.is, job.now * job.is.segment, scan_chunk, job.chunks, 0,
                 job.now > 0 ? job.is.begins : nullptr, job.states, job.now});
}

void slopes_of_chunks(Queue& queue, const DeltaBackward& job) {
  with_channels(job.is, [&]<int d>(Channels<d>) {
    gpu::launch(queue, {job.is.blocks, scan_threads, sizeof(Swept<d>)}, sweep_back<d>, job);
  });
}

}  // namespace weft::cuda
