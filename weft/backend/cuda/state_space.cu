// State spaces forward in bf16, by tensor cores (state_tiles.h). In a chunk that begins with S0, where e^x_ij
// is what is left at step i of what was there behind step j, and e^x_i of what was there before the chunk:
//
//   o_i = scale (e^x_i S0^T q_i + sum over j <= i of e^x_ij t_j (q_i k_j) v_j) + skip v_i
//   S = e^x_last S0 + sum over j of k_j (e^x_last,j t_j v_j)^T
//
// A warp has 16 steps of what is given, and a quarter of the rows of S in its registers.
#include "weft/backend/cuda/state_tiles.h"

namespace weft::cuda {
namespace {

template <int d>
struct Scan {
  Tile<d> q[2], k[2];
  Narrow<scan_chunk> v[2];
  Split<scan_chunk> written;
  Split<d> memory;
  ChunkNumbers numbers[2];
};

template <int d>
__device__ __forceinline__ void fetch_chunk(Scan<d>& s, const DeltaJob& job, const DeltaPlace& at,
                                            int first) {
  const int now = first / scan_chunk % 2;
  const Stretch steps{first, job.steps, at.b, at.g, at.r};
  if (first < job.steps) {
    fetch(s.q[now], job.q, steps);
    fetch(s.k[now], job.k, steps);
    fetch_part(s.v[now], job.v, steps, at.part * delta_part);
  }
  gpu::commit_copies();
}

/// e^x_ij t_j in the place of products alone.
__device__ __forceinline__ void weigh_pairs(float (&p)[8][4], const ChunkNumbers& is, int row0) {
#pragma unroll
  for (int n = 0; n < 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = row0 + fragment_row(i), column = fragment_column(n, i);
      p[n][i] *= column <= row ? is.between(column, row) * is.time[column] : 0.0F;
    }
}

__device__ __forceinline__ void put_part(const DeltaJob& job, const OwnSteps& own, const PartRows& o,
                                         Narrow<scan_chunk>& v) {
  const DeltaPlace& at = own.at;
  const float skip = job.skip[at.g * job.heads + at.r];
#pragma unroll
  for (int n = 0; n < 4; ++n)
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const int row = own.row0 + fragment_row(i), step = own.first + row, within = fragment_column(n, 0),
                column = at.part * delta_part + within;
      if (step >= job.steps || column >= job.v.one.width) continue;
      const auto values = gpu::load<std::uint32_t>(v.pair(row, within));
      put_pair(job.o.one, job.o.at(step, at.b, at.g, at.r) + column,
               job.scale * o[n][i] + skip * gpu::low<bf16>(values),
               job.scale * o[n][i + 1] + skip * gpu::high<bf16>(values));
    }
}

template <int d>
__global__ void __launch_bounds__(scan_threads, 2) scan(DeltaJob job) {
  auto& s = gpu::shared<Scan<d>>();
  const DeltaPlace at = delta_place(job, int(blockIdx.x));
  const int warp = int(threadIdx.x) / 32, row0 = 16 * warp;
  OwnMemory<d> memory = {};
  fetch_chunk(s, job, at, 0);
  show_memory<d>(s.memory, memory);
  const HeadNumbers head = numbers_of_head(job, at);
  if (warp == 0) find_numbers(s.numbers[0], head, ask_decays(job, at, 0), job.steps);
#pragma unroll 1
  for (int first = 0; first < job.steps; first += scan_chunk) {
    const int now = first / scan_chunk % 2;
    const ChunkNumbers& is = s.numbers[now];
    gpu::wait_copies<0>();
    __syncthreads();
    const int next = first + scan_chunk;
    fetch_chunk(s, job, at, next);
    const float2 decays = warp == 0 ? ask_decays(job, at, next) : float2{};
    weigh_rows(s.written, s.v[now], [&](int row) { return is.to_end(row) * is.time[row]; });
    PartRows o = {};
    through_memory<d>(o, s.q[now], row0, s.memory);
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) o[n][i] *= is.from_start(row0 + fragment_row(i));
    float p[8][4];
    rows_by_rows<bf16>(p, s.q[now], row0, s.k[now], 0);
    weigh_pairs(p, is, row0);
    add_by_steps(o, p, s.v[now]);
    put_part(job, {at, first, row0}, o, s.v[now]);
    __syncthreads();
    move_memory<d>(memory, is.kept(), s.k[now], s.written);
    show_memory<d>(s.memory, memory);
    if (warp == 0) find_numbers(s.numbers[1 - now], head, decays, job.steps - next);
  }
  gpu::wait_copies<0>();
}

}  // namespace

void scan_by_tiles(Queue& queue, const DeltaJob& job) {
  with_channels(job, [&]<int d>(Channels<d>) {
    gpu::launch(queue, {job.blocks, scan_threads, sizeof(Scan<d>)}, scan<d>, job);
  });
}

}  // namespace weft::cuda
