// The gated delta rule backward: segment by segment from the last, each from the memories before its chunks,
// which are made again. Blocks have parts of sums over columns and heads, which are added in order.
#include "weft/backend/cuda/delta_backward.h"
#include "weft/backend/cuda/kernels.h"
#include "weft/backend/cuda/pointwise.h"

namespace weft {
namespace {

using namespace cuda;

template <int widest>
__global__ void __launch_bounds__(delta_threads) go_back(DeltaBack job) {
  auto& shared = gpu::shared<DeltaBackward<widest>>();
  const HeadPlace place(job.of);
  const Mine<widest> mine(job.of, place);
  begin_memory<widest>(job.of, place, mine, job.of.begin, shared.dmemory);
  std::int64_t from = job.of.first + (job.of.last - job.of.first - 1) / delta_chunk * delta_chunk;
  for (; from >= job.of.first; from -= delta_chunk) {
    shared.load(job, place, mine, from);
    __syncthreads();
    shared.chunk.relate(job.of.d);
    const auto read = shared.read(job.of.d, mine);
    __syncthreads();
#pragma unroll
    for (int n = 0; n < DeltaColumns<widest>::each; ++n) {
      const int i = mine.step(n, mine.first);
      shared.missing[i][mine.column] -= shared.chunk.since[i] * read.to_keys[n];
    }
    shared.gather(job.of, mine, read);
    __syncthreads();
    shared.miss();
    shared.solve();
    __syncthreads();
    shared.values(job, place, mine, read, from);
    shared.relate_backward(job.of);
    __syncthreads();
    shared.keys_backward(job, place, from);
    shared.gates_backward(job, place, from);
    __syncthreads();
    shared.go_back(job.of, mine);
    __syncthreads();
  }
  if (!mine.there) return;
  for (int x = mine.first; x < job.of.d; x += DeltaColumns<widest>::apart)
    job.dmemory[mine.in_memory(job.of, place, x)] = shared.dmemory[x][mine.column];
}

template <int widest>
void run(cuda::Queue& queue, const DeltaBack& job) {
  const std::int64_t blocks = job.of.batch * job.of.groups * job.of.heads * job.of.parts;
  gpu::launch(queue, {blocks, delta_threads, sizeof(DeltaBackward<widest>)}, go_back<widest>, job);
}

struct Added {
  Rows out;           // [s b g, d]
  const float* sums;  // [parts, rows heads, d], of rows from `first` on
  std::int64_t first, rows, total;
  int parts, heads, d;
};
__global__ void __launch_bounds__(256) add_parts(Added job) {
  const std::int64_t at = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= job.total) return;
  const std::int64_t row = cuda::row_of(at, job.d, job.total), x = at - row * job.d;
  float sum = 0;
  for (int part = 0; part < job.parts; ++part)
    for (int head = 0; head < job.heads; ++head)
      sum += job.sums[((part * job.rows + row) * job.heads + head) * job.d + x];
  put(job.out, start_of(job.out, job.first + row) + x * job.out.step, sum);
}

/// A head a block.
struct Gates {
  Rows decay, rate, ddecay, drate;         // [s b g, r]
  const float *speed, *shift, *dlog, *db;  // the latter [s b, g r]
  float *dspeed, *dshift;
  std::int64_t rows;  // s b
  int groups, heads;
};
__global__ void __launch_bounds__(256) gates_backward(Gates job) {
  const int number = int(blockIdx.x), group = number / job.heads, own = number % job.heads;
  const float slowness = expf(job.speed[number]), shift = job.shift[number];
  float dspeed = 0, dshift = 0;
  for (std::int64_t row = threadIdx.x; row < job.rows; row += blockDim.x) {
    const std::int64_t at = row * job.groups + group, of_head = at * job.heads + own;
    const float raw = get(job.decay, start_of(job.decay, at) + own * job.decay.step) + shift;
    const float b = sigmoid(get(job.rate, start_of(job.rate, at) + own * job.rate.step));
    const float dlog = job.dlog[of_head], draw = -dlog * slowness * sigmoid(raw);
    dspeed -= dlog * slowness * softplus(raw);
    dshift += draw;
    put(job.ddecay, start_of(job.ddecay, at) + own * job.ddecay.step, draw);
    put(job.drate, start_of(job.drate, at) + own * job.drate.step, job.db[of_head] * b * (1 - b));
  }
  auto& scratch = gpu::shared<Scratch>();
  dspeed = over_block(dspeed, scratch, 0, Plus{});
  dshift = over_block(dshift, scratch, 0, Plus{});
  if (threadIdx.x != 0) return;
  job.dspeed[number] += dspeed;
  job.dshift[number] += dshift;
}

/// out = the parts' sums, over heads that share a row, at the segment's rows.
struct Parts {
  const float* sums;
  int heads, d;
};
void add(cuda::Queue& queue, const Tensor& out, const Parts& parts, const DeltaJob& of) {
  const std::int64_t rows = (of.last - of.first) * of.batch * of.groups * of.heads / parts.heads;
  const std::int64_t first = of.first * of.batch * of.groups * of.heads / parts.heads;
  const Added job{.out = rows_of(out),
                  .sums = parts.sums,
                  .first = first,
                  .rows = rows,
                  .total = rows * parts.d,
                  .parts = of.parts,
                  .heads = parts.heads,
                  .d = parts.d};
  gpu::launch(queue, {(job.total + 255) / 256, 256}, add_parts, job);
}

/// The memory that a call works in.
struct Room {
  Tensor before_segments, before_chunks, dmemory, dkeys, dgates, all_dgates;
  /// The first or second of two.
  static float* half(const Tensor& both, int which) { return elements<float>(both.at(0, which)); }
};

/// One segment: memories before its chunks, its share of all gradients, and dmemory before it.
void go_back_a_segment(cuda::Queue& queue, DeltaBack job, const DeltaGrads& grads, const Room& room) {
  DeltaJob& of = job.of;
  const std::int64_t number = of.first / delta_segment;
  DeltaJob ahead = of;
  ahead.begin = elements<float>(room.before_segments.at(0, number));
  ahead.states = elements<float>(room.before_chunks);
  keep_memories(queue, ahead);
  of.states = ahead.states;
  job.rows = (of.last - of.first) * of.batch * of.groups * of.heads;
  of.d <= 128 ? run<128>(queue, job) : run<256>(queue, job);
  add(queue, grads.dq, {job.dq, of.heads, of.d}, of);
  add(queue, grads.dk, {job.dk, of.heads, of.d}, of);
  for (const int which : {0, 1}) {
    const Tensor all = room.all_dgates.at(0, which);
    add(queue, all.view({all.dim(0), 1}), {which == 0 ? job.dlog : job.drate, 1, 1}, of);
  }
}

Gates gates_of(const DeltaGrads& grads, const DeltaIn& in, const Tensor& all_dgates) {
  return {.decay = rows_of(in.decay),
          .rate = rows_of(in.rate),
          .ddecay = rows_of(grads.ddecay),
          .drate = rows_of(grads.drate),
          .speed = elements<float>(in.speed),
          .shift = elements<float>(in.shift),
          .dlog = Room::half(all_dgates, 0),
          .db = Room::half(all_dgates, 1),
          .dspeed = elements<float>(grads.dspeed),
          .dshift = elements<float>(grads.dshift),
          .rows = in.v.dim(0) * in.v.dim(1),
          .groups = int(in.v.dim(2)),
          .heads = int(in.v.dim(3))};
}

}  // namespace

void CudaKernels::delta_rule_backward(const DeltaGrads& grads, const Tensor& dout, const DeltaIn& in) {
  if (in.v.elements() == 0) return;
  const DeltaSpace space = space_of_delta(in);
  const Room room{workspace(space.before_segments), workspace(space.before_chunks),
                  workspace(space.dmemory),         workspace(space.dkeys),
                  workspace(space.dgates),          workspace(space.all_dgates)};
  DeltaBack job{};
  job.of = delta_job(in);
  job.of.dout = rows_of(dout);
  job.dv = rows_of(grads.dv);
  job.dmemory = elements<float>(room.dmemory);
  job.dq = Room::half(room.dkeys, 0);
  job.dk = Room::half(room.dkeys, 1);
  job.dlog = Room::half(room.dgates, 0);
  job.drate = Room::half(room.dgates, 1);
  DeltaJob all = job.of;
  all.states = elements<float>(room.before_segments);
  all.every = int(delta_segment / delta_chunk);
  keep_memories(queue(), all);
  const std::int64_t steps = in.v.dim(0);
  for (std::int64_t first = (steps - 1) / delta_segment * delta_segment; first >= 0; first -= delta_segment) {
    job.of.first = first;
    job.of.last = std::min(steps, first + delta_segment);
    go_back_a_segment(queue(), job, grads, room);
    job.of.begin = job.dmemory;
  }
  gpu::launch(queue(), {in.v.dim(2) * in.v.dim(3), 256, sizeof(Scratch)}, gates_backward,
              gates_of(grads, in, room.all_dgates));
}

}  // namespace weft
