// Eight bits by blocks: a tile of 128 x 128 holds whole blocks of every kind, so its block of threads has all
// that their scales follow from, and writes codes as they lie and turned from one read of x.
// apart: sm_90a
#include "weft/backend/cuda/eights.h"
#include "weft/backend/cuda/kernels.h"
#include "weft/backend/cuda/reduce.h"
#include "weft/backend/cuda/rows.h"
#include "weft/tensor/f8_blocks.h"
#include "weft/tensor/f8_rounding.h"

namespace weft {
namespace {

using namespace cuda;

// Thread t has sixteen columns from t % 8 * 16 on, of rows t / 8, and 32, 64 and 96 further on.
constexpr int threads = 256, unit = int(f8_unit), side = int(F8Grid::wide), parts = side / 32, warps = 8;

struct Written {
  F8Grid grid;
  unsigned char *codes, *inverses;  // or nowhere

  __device__ __forceinline__ void put(std::int64_t row, std::int64_t column, const BlockScale& scale) const {
    reinterpret_cast<float*>(inverses)[grid.place(row, column)] = scale.inverse;
  }
};

struct BlockRounding {
  Rows x;
  Written lying, turned;
  std::int64_t rows, columns;  // of codes as they lie
  std::int64_t tiles;          // in a row of tiles
};

/// Columns of numbers for columns of the tile are ordered so that lanes that take four each take 512 bytes in
/// a row: the first four of every thread's sixteen, then the next.
struct Tile {
  std::uint32_t codes[side * 33 + warps * 20];
  alignas(16) float greatest[parts][warps][side];
  alignas(16) float scales[parts][side];
  Scratch scratch;
};

/// The word of four codes of the tile. Lanes that read sixteen rows of four columns each, or write a row, are
/// spread over all banks.
__device__ __forceinline__ unsigned word_of(unsigned row, unsigned four) {
  return row * 33 + row / unit * 20 + four;
}

template <class F8, bool in_exponents>
__device__ __forceinline__ BlockScale scale_for(float greatest) {
  constexpr float largest = largest_of(dtype_of<F8>);
  return in_exponents ? exponent_of_block(greatest, largest) : scale_of_block(greatest, largest);
}

__device__ __forceinline__ void read_row(const Rows& rows, std::int64_t row, std::int64_t column,
                                         float (&x)[unit]) {
  const bool there = row < rows.count;
  const std::int64_t start = there ? start_of(rows, row) : 0;
#pragma unroll
  for (int half = 0; half < unit; half += 8) {
    const Eight e = there ? read(rows, start, column + half) : Eight{};
#pragma unroll
    for (int i = 0; i < 8; ++i) x[half + i] = e.x[i];
  }
}

/// The greatest of lanes whose numbers differ in these bits.
template <int first, int last>
__device__ __forceinline__ float over_lanes(float x) {
#pragma unroll
  for (int by = first; by <= last; by *= 2) x = Greater{}(x, __shfl_xor_sync(~0U, x, by));
  return x;
}

template <class F8>
__device__ __forceinline__ uint4 codes_of_row(const float (&x)[unit], float scale) {
  std::uint32_t words[unit / 4];
#pragma unroll
  for (int i = 0; i < unit; i += 4)
    words[i / 4] = pair_of<F8>(x[i], x[i + 1], scale, scale) | pair_of<F8>(x[i + 2], x[i + 3], scale, scale)
                                                                   << 16;
  return {words[0], words[1], words[2], words[3]};
}

__device__ __forceinline__ void put_row(const BlockRounding& job, std::int64_t row, std::int64_t column,
                                        const uint4& codes) {
  if (row < job.rows && column < job.columns) gpu::store(job.lying.codes + row * job.columns + column, codes);
}

// ---- lines of 128 and of 32

/// Codes as they lie, a line of 128 in eight lanes and one of 32 in two.
template <class F8, bool narrow>
__device__ __forceinline__ void put_lines(const BlockRounding& job, const float (&x)[parts][unit],
                                          std::int64_t first_row, std::int64_t first_column) {
  const unsigned eighth = threadIdx.x % 8;
  const std::int64_t column = first_column + eighth * unit;
  constexpr int last_lane = narrow ? 1 : 4;
  std::uint32_t exponents[parts];
#pragma unroll
  for (int p = 0; p < parts; ++p) {
    const std::int64_t row = first_row + threadIdx.x / 8 + 32 * p;
    float greatest = 0;
#pragma unroll
    for (int i = 0; i < unit; ++i) greatest = greater_finite(greatest, x[p][i]);
    const BlockScale scale = scale_for<F8, narrow>(over_lanes<1, last_lane>(greatest));
    put_row(job, row, column, codes_of_row<F8>(x[p], scale.scale));
    if (!narrow) {
      if (eighth == 0 && row < job.rows) job.lying.put(row, column, scale);
      continue;
    }
    std::uint32_t word = std::uint32_t(scale.exponent) << eighth / 2 * 8;
    word |= __shfl_xor_sync(~0U, word, 2);
    exponents[p] = word | __shfl_xor_sync(~0U, word, 4);
  }
  if (narrow && eighth == 0)  // 32 rows further on is the next word
    gpu::store(job.lying.inverses + job.lying.grid.place(first_row, first_column) + threadIdx.x / 8 * 16,
               uint4{exponents[0], exponents[1], exponents[2], exponents[3]});
}

/// The greatest of sixteen columns of this warp's rows: every lane of four puts a quarter.
__device__ __forceinline__ void put_greatest(float (&to)[side], const float (&greatest)[unit]) {
  const unsigned quarter = threadIdx.x / 8 % 4;
  float mine[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    mine[i] = quarter == 0   ? greatest[i]
              : quarter == 1 ? greatest[4 + i]
              : quarter == 2 ? greatest[8 + i]
                             : greatest[12 + i];
  gpu::store(&to[(quarter * 8 + threadIdx.x % 8) * 4], float4{mine[0], mine[1], mine[2], mine[3]});
}

/// Of each column of the tile, in one part of 128 rows or in four of 32.
template <bool narrow>
__device__ __forceinline__ void meet_columns(Tile& shared, const float (&x)[parts][unit]) {
  float greatest[unit] = {};
#pragma unroll
  for (int p = 0; p < parts; ++p) {
#pragma unroll
    for (int i = 0; i < unit; ++i) greatest[i] = greater_finite(greatest[i], x[p][i]);
    if (!narrow && p + 1 < parts) continue;
#pragma unroll
    for (int i = 0; i < unit; ++i) greatest[i] = over_lanes<8, 16>(greatest[i]);
    put_greatest(shared.greatest[narrow ? p : 0][threadIdx.x / 32], greatest);
#pragma unroll
    for (int i = 0; i < unit; ++i) greatest[i] = 0;
  }
}

/// Scales of columns, a column a thread, for all to read; and to memory.
template <class F8, bool narrow>
__device__ __forceinline__ void scale_columns(const BlockRounding& job, Tile& shared, std::int64_t first_row,
                                              std::int64_t first_column) {
  if (threadIdx.x >= side) return;
  const unsigned column = threadIdx.x / 4 % 8 * unit + threadIdx.x / 32 * 4 + threadIdx.x % 4;
  std::uint32_t exponents = 0;
#pragma unroll
  for (int p = 0; p < (narrow ? parts : 1); ++p) {
    float greatest = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) greatest = Greater{}(greatest, shared.greatest[p][w][threadIdx.x]);
    const BlockScale scale = scale_for<F8, narrow>(greatest);
    shared.scales[p][threadIdx.x] = scale.scale;
    exponents |= std::uint32_t(scale.exponent) << 8 * p;
    if (!narrow && first_column + column < job.columns)
      job.turned.put(first_column + column, first_row, scale);
  }
  if (narrow)
    *reinterpret_cast<std::uint32_t*>(job.turned.inverses + job.turned.grid.place(first_column, first_row) +
                                      column % 32 * 16 + column / 32 * 4) = exponents;
}

/// Codes that will be turned: each column under its scale.
template <class F8, bool narrow>
__device__ __forceinline__ void keep_codes(Tile& shared, const float (&x)[parts][unit]) {
#pragma unroll
  for (int p = 0; p < parts; ++p)
#pragma unroll
    for (int i = 0; i < unit; i += 4) {
      const auto by = gpu::load<float4>(&shared.scales[narrow ? p : 0][(i / 4 * 8 + threadIdx.x % 8) * 4]);
      const std::uint32_t low = pair_of<F8>(x[p][i], x[p][i + 1], by.x, by.y),
                          high = pair_of<F8>(x[p][i + 2], x[p][i + 3], by.z, by.w);
      shared.codes[word_of(threadIdx.x / 8 + 32 * p, threadIdx.x % 8 * 4 + i / 4)] = low | high << 16;
    }
}

// ---- of any kind

/// Four columns of sixteen rows a thread.
__device__ __forceinline__ void put_turned(const BlockRounding& job, const Tile& shared,
                                           std::int64_t first_row, std::int64_t first_column) {
  const unsigned below = threadIdx.x % 8 * unit, four = threadIdx.x / 8;
  std::uint32_t columns[4][unit / 4];
#pragma unroll
  for (int i = 0; i < unit; i += 4) {
    const auto word = [&](int by) { return shared.codes[word_of(below + i + by, four)]; };
    const std::uint32_t a = word(0), b = word(1), c = word(2), d = word(3);
    const std::uint32_t upper = __byte_perm(a, b, 0x5140), lower = __byte_perm(c, d, 0x5140),
                        upper_right = __byte_perm(a, b, 0x7362), lower_right = __byte_perm(c, d, 0x7362);
    columns[0][i / 4] = __byte_perm(upper, lower, 0x5410);
    columns[1][i / 4] = __byte_perm(upper, lower, 0x7632);
    columns[2][i / 4] = __byte_perm(upper_right, lower_right, 0x5410);
    columns[3][i / 4] = __byte_perm(upper_right, lower_right, 0x7632);
  }
  const std::int64_t row = first_row + below, column = first_column + four * 4;
  if (row >= job.rows || column >= job.columns) return;
#pragma unroll
  for (int j = 0; j < 4; ++j)
    gpu::store(job.turned.codes + (column + j) * job.rows + row,
               uint4{columns[j][0], columns[j][1], columns[j][2], columns[j][3]});
}

/// The inverse of a square, and ones behind the last of a row of squares.
__device__ __forceinline__ void put_square(const Written& to, std::int64_t row, std::int64_t column,
                                           const BlockScale& scale) {
  to.put(row, column, scale);
  const bool last = column / side + 1 == to.grid.across();
  for (std::int64_t i = to.grid.across(); last && i < to.grid.row_of_squares(); ++i)
    to.put(row, i * side, BlockScale{});
}

template <class F8>
__device__ __forceinline__ void put_squares(const BlockRounding& job, Tile& shared,
                                            const float (&x)[parts][unit], std::int64_t first_row,
                                            std::int64_t first_column) {
  float greatest = 0;
#pragma unroll
  for (int p = 0; p < parts; ++p)
#pragma unroll
    for (int i = 0; i < unit; ++i) greatest = greater_finite(greatest, x[p][i]);
  const BlockScale scale = scale_for<F8, false>(over_block(greatest, shared.scratch, 0, Greater{}));
  if (threadIdx.x == 0) {
    if (job.lying.codes) put_square(job.lying, first_row, first_column, scale);
    if (job.turned.codes) put_square(job.turned, first_column, first_row, scale);
  }
#pragma unroll
  for (int p = 0; p < parts; ++p) {
    const unsigned row = threadIdx.x / 8 + 32 * p, eighth = threadIdx.x % 8;
    const uint4 codes = codes_of_row<F8>(x[p], scale.scale);
    if (job.lying.codes) put_row(job, first_row + row, first_column + eighth * unit, codes);
    if (!job.turned.codes) continue;
    const std::uint32_t words[] = {codes.x, codes.y, codes.z, codes.w};
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) shared.codes[word_of(row, eighth * 4 + i)] = words[i];
  }
}

template <class F8, F8Blocks blocks>
__global__ void __launch_bounds__(threads) round_blocks(BlockRounding job) {
  auto& shared = gpu::shared<Tile>();
  constexpr bool narrow = blocks == F8Blocks::lines_of_32;
  const std::int64_t first_row = blockIdx.x / job.tiles * side, first_column = blockIdx.x % job.tiles * side;
  float x[parts][unit];
#pragma unroll
  for (int p = 0; p < parts; ++p)
    read_row(job.x, first_row + threadIdx.x / 8 + 32 * p, first_column + threadIdx.x % 8 * unit, x[p]);
  if constexpr (blocks == F8Blocks::squares_of_128) {
    put_squares<F8>(job, shared, x, first_row, first_column);
  } else {
    if (job.lying.codes) put_lines<F8, narrow>(job, x, first_row, first_column);
    if (!job.turned.codes) return;
    meet_columns<narrow>(shared, x);
    __syncthreads();
    scale_columns<F8, narrow>(job, shared, first_row, first_column);
    __syncthreads();
    keep_codes<F8, narrow>(shared, x);
  }
  if (!job.turned.codes) return;
  __syncthreads();
  put_turned(job, shared, first_row, first_column);
}

using Kernel = void (*)(BlockRounding);

template <class F8>
Kernel kernel_for(F8Blocks blocks) {
  if (blocks == F8Blocks::squares_of_128) return round_blocks<F8, F8Blocks::squares_of_128>;
  return blocks == F8Blocks::lines_of_32 ? round_blocks<F8, F8Blocks::lines_of_32>
                                         : round_blocks<F8, F8Blocks::lines_of_128>;
}

// ---- what codes stand for

struct Widening {
  F8Grid grid;
  const unsigned char *codes, *inverses;
  unsigned char* out;  // bf16
  std::int64_t count;  // of sixteen codes each, which share a scale
};

template <class F8>
__global__ void __launch_bounds__(threads) widen_codes(Widening job) {
  const std::int64_t i = std::int64_t(blockIdx.x) * threads + threadIdx.x;
  if (i >= job.count) return;
  const std::int64_t in_row = job.grid.columns / unit, row = i / in_row;
  const std::int64_t at = job.grid.place(row, i % in_row * unit);
  const float by = job.grid.blocks == F8Blocks::lines_of_32
                       ? power_of_exponent(job.inverses[at])
                       : reinterpret_cast<const float*>(job.inverses)[at];
  const auto codes = gpu::load<uint4>(job.codes + i * unit);
  const std::uint32_t words[] = {codes.x, codes.y, codes.z, codes.w};
  std::uint32_t wide[unit / 2];
#pragma unroll
  for (int w = 0; w < unit / 4; ++w) {
    const auto number = [&](int byte) {
      return float(F8::from_bits(std::uint8_t(words[w] >> 8 * byte))) * by;
    };
    wide[2 * w] = gpu::pack<bf16>(number(0), number(1));
    wide[2 * w + 1] = gpu::pack<bf16>(number(2), number(3));
  }
  gpu::store(job.out + 2 * i * unit, uint4{wide[0], wide[1], wide[2], wide[3]});
  gpu::store(job.out + 2 * i * unit + 16, uint4{wide[4], wide[5], wide[6], wide[7]});
}

Written written(const Tensor& codes, const Tensor& inverses, F8Blocks blocks) {
  if (!codes) return {};
  return {{blocks, codes.dim(0), codes.dim(1)}, codes_of(codes), codes_of(inverses)};
}

}  // namespace

void CudaKernels::quantize_blocks(const Quantized& out, const Tensor& x, F8Blocks blocks) {
  if (x.elements() == 0) return;
  const std::int64_t of = f8_unit_of(blocks);
  BlockRounding job{rows_of(x),
                    written(out.codes, out.inverses, blocks),
                    written(out.turned, out.turned_inverses, blocks),
                    f8_blocks_in(x.dim(0), of) * of,
                    f8_blocks_in(x.dim(1), of) * of,
                    0};
  job.tiles = f8_blocks_in(job.columns, side);
  const Tensor& any = out.codes ? out.codes : out.turned;
  gpu::launch(queue(), {f8_blocks_in(job.rows, side) * job.tiles, threads, sizeof(Tile)},
              any.dtype() == Dtype::f8e5m2 ? kernel_for<f8e5m2>(blocks) : kernel_for<f8e4m3>(blocks), job);
}

Tensor CudaKernels::widened(const Tensor& codes, const Tensor& inverses, F8Blocks blocks) const {
  Tensor out = workspace(codes.shape(), Dtype::bf16);
  const Widening job{{blocks, codes.dim(0), codes.dim(1)},
                     codes_of(codes),
                     codes_of(inverses),
                     codes_of(out),
                     codes.elements() / unit};
  gpu::launch(queue(), {f8_blocks_in(job.count, threads), threads},
              codes.dtype() == Dtype::f8e5m2 ? widen_codes<f8e5m2> : widen_codes<f8e4m3>, job);
  return out;
}

}  // namespace weft
