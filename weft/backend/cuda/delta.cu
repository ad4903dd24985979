// The gated delta rule and state spaces forward, and the states that the way back begins its segments with.
#include "weft/backend/cuda/delta_chunks.h"
#include "weft/backend/cuda/kernels.h"

namespace weft {
namespace cuda {
namespace {

/// Two steps a warp.
template <class Chunk>
__device__ __forceinline__ void put_results(const Chunk& s, const DeltaJob& job, const DeltaPlace& at,
                                            int first) {
  const int lane = lane_here(), column = at.part * delta_part + lane;
  if (column >= job.v.one.width) return;
#pragma unroll
  for (int i = 2 * warp_here(); i < 2 * warp_here() + 2; ++i) {
    if (first + i >= job.steps) return;
    float sum = s.from_start[i] * s.asked[i][lane];
    for (int j = 0; j <= i; ++j) sum += s.of_queries[i][j] * s.rate[j] * s.missing[j][lane];
    sum *= job.scale;
    if (!Chunk::corrects) sum += job.skip[at.g * job.heads + at.r] * s.missing[i][lane];
    put(job.o.one, job.o.at(first + i, at.b, at.g, at.r) + column, sum);
  }
}

/// f(what a lane has of a row of a block's memory, where that lies) for what is there.
template <class F>
__device__ __forceinline__ void each_of_memory(Columns* matrix, const DeltaJob& job, const DeltaPlace& at,
                                               F f) {
  const int lane = lane_here(), width = int(job.v.one.width), column = at.part * delta_part + lane;
  const std::int64_t head = (std::int64_t(at.b) * job.groups + at.g) * job.heads + at.r;
  each_own_row(job.eights() * 8, [&](int row) {
    if (row < job.d && column < width)
      f(matrix[row][lane], job.memory[(head * job.d + row) * width + column]);
  });
}

template <int wide, bool corrects>
__global__ void __launch_bounds__(delta_threads, 2) remember(DeltaJob job) {
  auto& s = gpu::shared<DeltaChunk<wide, corrects>>();
  const DeltaPlace at = delta_place(job, int(blockIdx.x));
  clear_matrix(s.state, job.eights() * 8);
  if (job.memory != nullptr)
    each_of_memory(s.state, job, at, [](float& here, float& there) { here = there; });
  for (int first = 0; first < job.steps; first += delta_chunk) {
    go_through<true>(s, job, at, first);
    put_results(s, job, at, first);
    move_state(s, job);
  }
  if (job.memory != nullptr)
    each_of_memory(s.state, job, at, [](float& here, float& there) { there = here; });
}

template <int wide, bool corrects>
__global__ void __launch_bounds__(delta_threads, 2) keep(DeltaJob job) {
  auto& s = gpu::shared<DeltaChunk<wide, corrects>>();
  const DeltaPlace at = delta_place(job, int(blockIdx.x));
  clear_matrix(s.state, job.eights() * 8);
  const int last = (job.segments - 1) * job.segment;
  for (int first = 0;; first += delta_chunk) {
    if (first > 0 && first % job.segment == 0)
      keep_matrix(segment_place(job, first / job.segment), s.state, job.eights() * 8);
    if (first == last) return;
    go_through<false>(s, job, at, first);
    move_state(s, job);
  }
}

}  // namespace

Heads numbers_at(const Tensor& t) {
  Heads out = heads_of(t);
  out.r = t.stride(3);
  return out;
}

DeltaJob delta_job(const char* name, const Tensor& o, const DeltaIn& in) {
  if (in.q.dim(3) > most_delta_channels)
    fail(Kind::usage, name, ": heads of ", in.q.dim(3), " channels, and a GPU takes ", most_delta_channels,
         " at most");
  return {.q = heads_of(in.q),
          .k = heads_of(in.k),
          .v = heads_of(in.v),
          .o = heads_of(o),
          .decay = numbers_at(in.decay),
          .rate = in.corrects() ? numbers_at(in.rate) : Heads{},
          .speed = elements<float>(in.speed),
          .shift = elements<float>(in.shift),
          .skip = in.corrects() ? nullptr : elements<float>(in.skip),
          .scale = in.scale,
          .steps = int(in.v.dim(0)),
          .batch = int(in.v.dim(1)),
          .groups = int(in.v.dim(2)),
          .heads = int(in.v.dim(3)),
          .d = int(in.q.dim(3)),
          .parts = int(parts_of_delta(in)),
          .corrects = in.corrects(),
          .blocks = blocks_of_delta(in),
          .segment = int(segment_of_delta(in)),
          .segments = int(segments_of_delta(in)),
          .begins = nullptr,
          .memory = in.memory ? elements<float>(in.memory) : nullptr};
}

void keep_states(Queue& queue, const DeltaJob& job) {
  if (job.segments == 1) return;
  with_form(job, [&]<int wide, bool corrects>(Form<wide, corrects>) {
    gpu::launch(queue, {job.blocks, delta_threads, sizeof(DeltaChunk<wide, corrects>)}, keep<wide, corrects>,
                job);
  });
}

}  // namespace cuda

void CudaKernels::delta_rule(const Tensor& o, const DeltaIn& in) {
  using namespace cuda;
  if (o.elements() == 0) return;
  const DeltaJob job = delta_job("delta_rule", o, in);
  if (scans_by_tiles(in)) return scan_by_tiles(queue(), job);
  with_form(job, [&]<int wide, bool corrects>(Form<wide, corrects>) {
    gpu::launch(queue(), {job.blocks, delta_threads, sizeof(DeltaChunk<wide, corrects>)},
                remember<wide, corrects>, job);
  });
}

}  // namespace weft
