// The gated delta rule forward (delta_chunks.h): what heads say, or memories that backward begins from.
#include "weft/backend/cuda/delta_job.h"
#include "weft/backend/cuda/kernels.h"

namespace weft {
namespace {

using namespace cuda;

template <int widest>
struct Forward {
  DeltaChunk<widest> chunk;
  typename DeltaColumns<widest>::Memory memory;
  typename DeltaColumns<widest>::Values u;
};

/// The first sums of a thread's steps: what the memory says to keys and to queries.
template <int widest>
struct Said {
  float to_keys[DeltaColumns<widest>::each] = {}, to_queries[DeltaColumns<widest>::each] = {};

  __device__ __forceinline__ void ask(const DeltaJob& job, const Forward<widest>& shared,
                                      const Mine<widest>& mine) {
    for (int x = 0; x < job.d; ++x) {
      const float here = shared.memory[x][mine.column];
#pragma unroll
      for (int n = 0; n < DeltaColumns<widest>::each; ++n) {
        const int i = mine.step(n, mine.first);
        to_keys[n] += shared.chunk.k[i][x] * here;
        to_queries[n] += shared.chunk.q[i][x] * here;
      }
    }
  }
};

template <int widest>
__device__ __forceinline__ void write_chunk(const DeltaJob& job, const HeadPlace& place,
                                            const Forward<widest>& shared, const Said<widest>& said,
                                            std::int64_t from) {
  const Mine<widest> mine(job, place);
#pragma unroll
  for (int n = 0; n < DeltaColumns<widest>::each; ++n) {
    const int i = mine.step(n, mine.first);
    float sum = shared.chunk.since[i] * said.to_queries[n];
    for (int j = 0; j <= i; ++j) sum += shared.chunk.queries[i][j] * shared.u[j][mine.column];
    if (from + i >= job.last || !mine.there) continue;
    put(job.o, start_of(job.o, place.own_row(job, from + i)) + mine.of_value * job.o.step, job.scale * sum);
  }
}

template <int widest>
__device__ __forceinline__ void keep_memory(const DeltaJob& job, const HeadPlace& place,
                                            const Forward<widest>& shared, std::int64_t number) {
  const Mine<widest> mine(job, place);
  const std::int64_t heads = job.batch * job.groups * job.heads;
  float* to = job.states + number * heads * job.d * job.d_value;
  if (!mine.there) return;
  for (int x = mine.first; x < job.d; x += DeltaColumns<widest>::apart)
    to[mine.in_memory(job, place, x)] = shared.memory[x][mine.column];
}

template <int widest, bool keeps>
__global__ void __launch_bounds__(delta_threads) remember(DeltaJob job) {
  auto& shared = gpu::shared<Forward<widest>>();
  const HeadPlace place(job);
  const Mine<widest> mine(job, place);
  begin_memory<widest>(job, place, mine, job.begin, shared.memory);
  int number = 0;
  for (std::int64_t from = job.first; from < job.last; from += delta_chunk, ++number) {
    if (keeps && number % job.every == 0) keep_memory<widest>(job, place, shared, number / job.every);
    const int count = int(job.last - from < delta_chunk ? job.last - from : delta_chunk);
    shared.chunk.load(job, place, from, count);
    __syncthreads();
    shared.chunk.relate(job.d);
    Said<widest> said;
    said.ask(job, shared, mine);
    __syncthreads();
#pragma unroll
    for (int n = 0; n < DeltaColumns<widest>::each; ++n) {
      const int i = mine.step(n, mine.first);
      float v = 0;
      if (i < count && mine.there)
        v = get(job.v, start_of(job.v, place.own_row(job, from + i)) + mine.of_value * job.v.step);
      shared.u[i][mine.column] = v - shared.chunk.since[i] * said.to_keys[n];
    }
    __syncthreads();
    correct<widest>(shared.chunk, shared.u);
    __syncthreads();
    if constexpr (!keeps) write_chunk<widest>(job, place, shared, said, from);
    pass_on<widest>(job, shared.chunk, mine, shared.u, shared.memory);
    __syncthreads();
  }
}

template <int widest, bool keeps>
void run(cuda::Queue& queue, const DeltaJob& job) {
  const std::int64_t blocks = job.batch * job.groups * job.heads * job.parts;
  gpu::launch(queue, {blocks, delta_threads, sizeof(Forward<widest>)}, remember<widest, keeps>, job);
}

}  // namespace

namespace cuda {

DeltaJob delta_job(const DeltaIn& in) {
  DeltaJob job{};
  job.q = rows_of(in.q);
  job.k = rows_of(in.k);
  job.v = rows_of(in.v);
  job.decay = rows_of(in.decay);
  job.rate = rows_of(in.rate);
  job.speed = elements<float>(in.speed);
  job.shift = elements<float>(in.shift);
  job.last = in.v.dim(0);
  job.batch = in.v.dim(1);
  job.groups = int(in.v.dim(2));
  job.heads = int(in.v.dim(3));
  job.d = int(in.q.dim(3));
  job.d_value = int(in.v.dim(4));
  job.parts = delta_parts(in);
  job.scale = in.scale;
  job.every = 1;
  return job;
}

void keep_memories(Queue& queue, const DeltaJob& job) {
  job.d <= 128 ? run<128, true>(queue, job) : run<256, true>(queue, job);
}

}  // namespace cuda

void CudaKernels::delta_rule(const Tensor& o, const DeltaIn& in) {
  if (o.elements() == 0) return;
  DeltaJob job = delta_job(in);
  job.o = rows_of(o);
  job.d <= 128 ? run<128, false>(queue(), job) : run<256, false>(queue(), job);
}

}  // namespace weft
