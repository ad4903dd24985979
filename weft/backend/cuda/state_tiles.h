// State spaces in bf16 by tensor cores, in chunks of 64 steps: what their kernels share. A block has a head
// of one sequence and 32 columns of its memory, as elsewhere (delta_chunks.h). Queries, keys and values are
// what they are. Everything else is f32, and tensor cores take it as a sum of two bf16, the second of what
// the first left, so that it loses 2^-17 of itself; f16 would do so only of what is neither large nor small,
// and memories may be either.
#pragma once

#include "weft/backend/cuda/attention_tiles.h"
#include "weft/backend/cuda/delta_job.h"
#include "weft/backend/cuda/pointwise.h"

namespace weft::cuda {

inline constexpr int scan_threads = tile_threads;
static_assert(delta_part == 32 && scan_chunk == 64 && scan_threads == 128);

/// Rows of 32 numbers. Eight rows of one column of 16-byte pieces are in 8 different groups of banks.
template <int rows>
struct alignas(1024) Narrow {
  std::uint16_t numbers[rows * delta_part];
  __device__ __forceinline__ std::uint16_t* piece(int row, int piece) {
    return numbers + row * delta_part + (piece ^ row / 2 % 4) * 8;
  }
  /// The two numbers of an even column on.
  __device__ __forceinline__ std::uint16_t* pair(int row, int column) {
    return piece(row, column / 8) + column % 8;
  }
};
/// What is f32, in two.
template <int rows>
struct Split {
  Narrow<rows> high, low;
};
struct Halves {
  std::uint32_t high, low;
};
__device__ __forceinline__ Halves split(float x, float y) {
  const std::uint32_t high = gpu::pack<bf16>(x, y);
  return {high, gpu::pack<bf16>(x - gpu::low<bf16>(high), y - gpu::high<bf16>(high))};
}

/// Of a step: log2 of what is left behind it of what was there before the chunk, and t. The former in two
/// parts, so that differences are as exact as sums of their own would be.
struct ChunkNumbers {
  float2 left[scan_chunk];
  float time[scan_chunk];
  /// What is left at step i of what was there behind step j.
  __device__ __forceinline__ float between(int j, int i) const {
    return gpu::power_of_two((left[i].x - left[j].x) + (left[i].y - left[j].y));
  }
  __device__ __forceinline__ float from_start(int i) const {
    return gpu::power_of_two(left[i].x + left[i].y);
  }
  __device__ __forceinline__ float to_end(int j) const { return between(j, scan_chunk - 1); }
  __device__ __forceinline__ float kept() const { return from_start(scan_chunk - 1); }
};

/// What makes them: of a head, and of a lane's two steps, which are asked for long before they are needed.
struct HeadNumbers {
  float shift, slowness;
};
__device__ __forceinline__ HeadNumbers numbers_of_head(const DeltaJob& job, const DeltaPlace& at) {
  const int head = at.g * job.heads + at.r;
  return {job.shift[head], expf(job.speed[head])};
}
__device__ __forceinline__ float2 ask_decays(const DeltaJob& job, const DeltaPlace& at, int first) {
  const int step = first + int(threadIdx.x) % 32 * 2;
  const auto one = [&](int i) {
    return i < job.steps ? get(job.decay.one, job.decay.at(i, at.b, at.g, at.r)) : 0.0F;
  };
  return {one(step), one(step + 1)};
}

/// For the first warp. Steps behind the last change nothing. A step that leaves less than 2^-10000 might as
/// well leave that.
__device__ __forceinline__ void find_numbers(ChunkNumbers& to, const HeadNumbers& head, const float2& decays,
                                             int steps_left) {
  const int lane = int(threadIdx.x) % 32;
  float time[2];
  double left[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const bool inside = 2 * lane + h < steps_left;
    time[h] = inside ? softplus((h == 0 ? decays.x : decays.y) + head.shift) : 0.0F;
    left[h] = double(fmaxf(-head.slowness * time[h] * log2_e, -1e4F));
  }
  double sum = left[0] + left[1];
#pragma unroll
  for (unsigned by = 1; by < 32; by *= 2) {
    const double before = __shfl_up_sync(~0U, sum, by);
    if (lane >= int(by)) sum += before;
  }
  const double both[2] = {sum - left[1], sum};
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float high = float(both[h]);
    to.left[2 * lane + h] = {high, float(both[h] - double(high))};
    to.time[2 * lane + h] = time[h];
  }
}

/// Rows of 32 columns, as fetch() has tiles.
__device__ __forceinline__ void fetch_part(Narrow<scan_chunk>& to, const Heads& from, const Stretch& which,
                                           int column) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = int(threadIdx.x) / 4 + 32 * half, piece = int(threadIdx.x) % 4, step = which.first + row;
    const std::int64_t start = from.at(step, which.b, which.g, which.r) + column + piece * 8;
    const bool inside = step < which.length && column + piece * 8 < int(from.one.width);
    gpu::copy_async(to.piece(row, piece), reinterpret_cast<const std::uint16_t*>(from.one.data) + start,
                    inside);
  }
}

/// A warp's 16 rows and 32 columns.
using PartRows = float[4][4];
/// A warp's rows of a memory [d, 32], a quarter of all.
template <int d>
using OwnMemory = float[d / 64][4][4];
template <int d>
__device__ __forceinline__ int memory_row(int m) {
  return int(threadIdx.x) / 32 * (d / 4) + 16 * m;
}

/// o += a rows [16 k, 16 k + 16) of b.
template <int rows>
__device__ __forceinline__ void multiply_rows(PartRows& o, const std::uint32_t (&a)[4], Narrow<rows>& b,
                                              int k) {
  const int lane = int(threadIdx.x) % 32;
#pragma unroll
  for (int n = 0; n < 4; n += 2) {
    std::uint32_t right[4];
    gpu::load_matrices<true>(right, b.piece(16 * k + lane % 16, n + lane / 16));
    gpu::multiply<bf16>(o[n], a, right[0], right[1]);
    gpu::multiply<bf16>(o[n + 1], a, right[2], right[3]);
  }
}

/// o += rows [row0, row0 + 16) of a, of d channels, times b.
template <int d>
__device__ __forceinline__ void through_memory(PartRows& o, Tile<d>& a, int row0, Split<d>& b) {
  const int lane = int(threadIdx.x) % 32;
#pragma unroll 1
  for (int k = 0; k < d / 16; ++k) {
    std::uint32_t left[4];
    gpu::load_matrices(left, a.piece(row0 + lane % 16, 2 * k + lane / 16));
    multiply_rows(o, left, b.high, k);
    multiply_rows(o, left, b.low, k);
  }
}

/// Two bf16 for each number of p in columns [16 k, 16 k + 16), as left operands.
struct SplitRows {
  std::uint32_t high[4], low[4];
};
__device__ __forceinline__ SplitRows split_rows(const float (&p)[8][4], int k) {
  SplitRows out;
#pragma unroll
  for (int i = 0; i < 4; ++i) {  // two d-fragments are one a-fragment
    const float* const at = &p[2 * k + i / 2][i % 2 * 2];
    const Halves halves = split(at[0], at[1]);
    out.high[i] = halves.high;
    out.low[i] = halves.low;
  }
  return out;
}

/// o [16, 32] += p [16, 64] b
__device__ __forceinline__ void add_by_steps(PartRows& o, const float (&p)[8][4], Narrow<scan_chunk>& b) {
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const SplitRows left = split_rows(p, k);
    multiply_rows(o, left.high, b, k);
    multiply_rows(o, left.low, b, k);
  }
}

/// memory = kept memory + a^T b, for this warp's rows.
template <int d>
__device__ __forceinline__ void move_memory(OwnMemory<d>& memory, float kept, Tile<d>& a,
                                            Split<scan_chunk>& b) {
  const int lane = int(threadIdx.x) % 32;
#pragma unroll
  for (int m = 0; m < d / 64; ++m) {
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) memory[m][n][i] *= kept;
#pragma unroll
    for (int k = 0; k < scan_chunk / 16; ++k) {
      std::uint32_t left[4];
      gpu::load_matrices<true>(
          left, a.piece(16 * k + lane % 8 + lane / 16 * 8, memory_row<d>(m) / 8 + lane / 8 % 2));
      multiply_rows(memory[m], left, b.high, k);
      multiply_rows(memory[m], left, b.low, k);
    }
  }
}
/// To where other warps read it.
template <int d>
__device__ __forceinline__ void show_memory(Split<d>& to, const OwnMemory<d>& memory) {
#pragma unroll
  for (int m = 0; m < d / 64; ++m)
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int i = 0; i < 4; i += 2) {
        const int row = memory_row<d>(m) + fragment_row(i), column = fragment_column(n, 0);
        const Halves halves = split(memory[m][n][i], memory[m][n][i + 1]);
        gpu::store(to.high.pair(row, column), halves.high);
        gpu::store(to.low.pair(row, column), halves.low);
      }
}

/// Between registers and memory, where each thread has its own places: one of so many matrices of a block.
struct OneOf {
  int block, number, of;
};
template <int d>
__device__ __forceinline__ float* own_place(float* all, const OneOf& one, int m, int n) {
  const std::int64_t before = std::int64_t(one.block) * one.of + one.number;
  return all + before * (d * delta_part) + ((4 * m + n) * scan_threads + int(threadIdx.x)) * 4;
}
template <int d>
__device__ __forceinline__ void keep_memory(float* all, const OneOf& one, const OwnMemory<d>& memory) {
#pragma unroll
  for (int m = 0; m < d / 64; ++m)
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const float(&x)[4] = memory[m][n];
      gpu::store(own_place<d>(all, one, m, n), float4{x[0], x[1], x[2], x[3]});
    }
}
template <int d>
__device__ __forceinline__ void fetch_memory(OwnMemory<d>& memory, float* all, const OneOf& one) {
#pragma unroll
  for (int m = 0; m < d / 64; ++m)
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const auto x = gpu::load<float4>(own_place<d>(all, one, m, n));
      memory[m][n][0] = x.x;
      memory[m][n][1] = x.y;
      memory[m][n][2] = x.z;
      memory[m][n][3] = x.w;
    }
}

template <int d>
__device__ __forceinline__ void show_kept(Split<d>& to, float* all, const OneOf& one) {
  OwnMemory<d> memory;
  fetch_memory<d>(memory, all, one);
  show_memory<d>(to, memory);
}

/// to = rows of from, each times its factor.
template <class Factor>
__device__ __forceinline__ void weigh_rows(Split<scan_chunk>& to, Narrow<scan_chunk>& from,
                                           Factor factor_of) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = int(threadIdx.x) / 4 + 32 * half, piece = int(threadIdx.x) % 4;
    const float factor = factor_of(row);
    const Eight e = widen<bf16>(gpu::load<uint4>(from.piece(row, piece)));
    std::uint32_t high[4], low[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const Halves halves = split(factor * e.x[2 * i], factor * e.x[2 * i + 1]);
      high[i] = halves.high;
      low[i] = halves.low;
    }
    gpu::store(to.high.piece(row, piece), uint4{high[0], high[1], high[2], high[3]});
    gpu::store(to.low.piece(row, piece), uint4{low[0], low[1], low[2], low[3]});
  }
}

/// Where a warp is at work: its head, the chunk's first step, and the first of its own 16 in that; backward,
/// whether its block had or has other heads of the chunk.
struct OwnSteps {
  const DeltaPlace& at;
  int first, row0;
  bool first_head = true, last_head = true;
};

/// f(Channels<..>) with the fewest channels that a tile must have room for.
template <int d>
struct Channels {};
template <class F>
void with_channels(const DeltaJob& job, F f) {
  job.d <= 64 ? f(Channels<64>{}) : f(Channels<128>{});
}

}  // namespace weft::cuda
