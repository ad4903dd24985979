// Eight bits: rounding, as it lies and turned, in one pass that also meets the greatest; products by the
// library, which wants both operands along what is summed; and scales, which never leave the GPU.
// apart: sm_90a
#include <cmath>

#include "weft/backend/cuda/device.h"
#include "weft/backend/cuda/eights.h"
#include "weft/backend/cuda/kernels.h"
#include "weft/backend/cuda/pointwise.h"
#include "weft/backend/cuda/products.h"
#include "weft/backend/cuda/reduce.h"
#include "weft/backend/cuda/space.h"
#include "weft/tensor/f8_rounding.h"

namespace weft {
namespace {

using namespace cuda;

constexpr int threads = 256, unit = int(f8_unit);

__global__ void __launch_bounds__(32) bring_inverses(const float* a, const float* b, float* to) {
  if (threadIdx.x < 2) to[4 * threadIdx.x] = threadIdx.x == 0 ? *a : *b;
}

struct Rounding {
  Rows x;
  const float* scale;  // null: nothing is rounded
  unsigned char *codes, *turned;
  std::int64_t rows, columns;  // of what is rounded, with what is beyond x
  std::int64_t tiles;          // in a row of tiles
  float* parts;                // the greatest of each tile, or null
};

/// Codes of a tile. Rows are 66 bytes apart, so that sixteen of them are eight banks: threads that read
/// columns are then spread over all banks.
struct Tile {
  std::uint16_t pairs[rounded_tile][rounded_tile / 2 + 1];
  Scratch scratch;
};

/// Sixteen codes of a row: to the tile, and to where the row lies.
template <class F8>
__device__ __forceinline__ void put_codes(const Rounding& job, Tile& shared, const float (&x)[unit],
                                          std::int64_t row, std::int64_t column) {
  const float scale = *job.scale;
  std::uint32_t words[unit / 4];
#pragma unroll
  for (int i = 0; i < unit; i += 4) {
    const std::uint32_t low = pair_of<F8>(x[i], x[i + 1], scale, scale),
                        high = pair_of<F8>(x[i + 2], x[i + 3], scale, scale);
    words[i / 4] = low | high << 16;
    std::uint16_t* const to = shared.pairs[threadIdx.x / 4] + (threadIdx.x % 4) * (unit / 2) + i / 2;
    to[0] = std::uint16_t(low);
    to[1] = std::uint16_t(high);
  }
  if (job.codes && row < job.rows && column < job.columns)
    gpu::store(job.codes + row * job.columns + column, uint4{words[0], words[1], words[2], words[3]});
}

/// Sixteen codes each of two columns of the tile that begins at row, column: by half of the threads.
__device__ __forceinline__ void put_turned(const Rounding& job, const Tile& shared, std::int64_t row,
                                           std::int64_t column) {
  const unsigned mine = threadIdx.x / 4 * 2, first = threadIdx.x % 4 * unit;
  if (mine >= rounded_tile || row + first >= job.rows || column + mine >= job.columns) return;
  std::uint32_t left[unit / 4], right[unit / 4];
#pragma unroll
  for (int i = 0; i < unit; i += 4) {
    const auto pair = [&](int below) -> std::uint32_t { return shared.pairs[first + i + below][mine / 2]; };
    const std::uint32_t upper = __byte_perm(pair(0), pair(1), 0x5140),  // both of the left, both of the right
        lower = __byte_perm(pair(2), pair(3), 0x5140);
    left[i / 4] = __byte_perm(upper, lower, 0x5410);
    right[i / 4] = __byte_perm(upper, lower, 0x7632);
  }
  unsigned char* const to = job.turned + (column + mine) * job.rows + row + first;
  gpu::store(to, uint4{left[0], left[1], left[2], left[3]});
  gpu::store(to + job.rows, uint4{right[0], right[1], right[2], right[3]});
}

// A tile of 64 x 64 a block, sixteen elements of a row a thread.
template <class F8>
__global__ void __launch_bounds__(threads) round_tiles(Rounding job) {
  auto& shared = gpu::shared<Tile>();
  const std::int64_t first_row = blockIdx.x / job.tiles * rounded_tile,
                     first_column = blockIdx.x % job.tiles * rounded_tile;
  const std::int64_t row = first_row + threadIdx.x / 4, column = first_column + threadIdx.x % 4 * unit;
  float x[unit] = {};
  if (row < job.x.count) {
    const std::int64_t start = start_of(job.x, row);
    const Packed asked[] = {ask(job.x, start, column), ask(job.x, start, column + 8)};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const Eight e = unpack(job.x, column + 8 * half, asked[half]);
#pragma unroll
      for (int i = 0; i < 8; ++i) x[8 * half + i] = e.x[i];
    }
  }
  if (job.scale) put_codes<F8>(job, shared, x, row, column);
  if (job.turned) {
    __syncthreads();
    put_turned(job, shared, first_row, first_column);
  }
  if (!job.parts) return;
  float greatest = 0;
#pragma unroll
  for (int i = 0; i < unit; ++i) greatest = greater_finite(greatest, x[i]);
  greatest = over_block(greatest, shared.scratch, 0, Greater{});
  if (threadIdx.x == 0) job.parts[blockIdx.x] = greatest;
}

struct Met {
  const float* parts;
  std::int64_t count;
  float* met;
};

__global__ void __launch_bounds__(threads) meet_parts(Met job) {
  auto& scratch = gpu::shared<Scratch>();
  float greatest = 0;
  for (std::int64_t i = threadIdx.x; i < job.count; i += threads)
    greatest = job.parts[i] > greatest ? job.parts[i] : greatest;
  greatest = over_block(greatest, scratch, 0, Greater{});
  if (threadIdx.x == 0 && greatest > *job.met) *job.met = greatest;
}

struct Renewal {
  Rows rows;
  float largest, by_margin;
  bool of_window;
};

__global__ void __launch_bounds__(threads) renew(Renewal job) {
  const std::int64_t row = std::int64_t(blockIdx.x) * threads + threadIdx.x;
  if (row >= job.rows.count) return;
  auto* const at = reinterpret_cast<float*>(job.rows.data) + start_of(job.rows, row);
  float greatest = at[ScaleRow::met], before = 0;
  for (std::int64_t i = ScaleRow::met; i < job.rows.width; ++i) {
    const float here = at[i];
    if (job.of_window && here > greatest) greatest = here;
    at[i] = before;
    before = here;
  }
  const float scale = next_scale(greatest, at[ScaleRow::scale], job.largest, job.by_margin);
  at[ScaleRow::scale] = scale;
  at[ScaleRow::inverse] = 1 / scale;
}

struct SumOfThree {
  __device__ __forceinline__ void operator()(const float (&x)[3], float (&y)[1]) const {
    y[0] = x[2] + (x[0] + x[1]);
  }
};

std::int64_t in_units(std::int64_t size) { return (size + f8_unit - 1) / f8_unit * f8_unit; }

}  // namespace

void CudaKernels::quantize(const Quantized& out, const Tensor& x, const Tensor& scale, const Tensor& met) {
  const Tensor& any = out.codes ? out.codes : out.turned;
  Rounding job{rows_of(x),
               elements<float>(scale),
               codes_of(out.codes),
               codes_of(out.turned),
               in_units(x.dim(0)),
               in_units(x.dim(1)),
               0,
               nullptr};
  if (x.elements() == 0) return;
  job.tiles = (job.columns + rounded_tile - 1) / rounded_tile;
  const std::int64_t blocks = rounding_blocks(x);
  const Tensor parts = met ? workspace({blocks}) : Tensor();
  job.parts = elements<float>(parts);
  gpu::launch(queue(), {blocks, threads, sizeof(Tile)},
              any && any.dtype() == Dtype::f8e5m2 ? round_tiles<f8e5m2> : round_tiles<f8e4m3>, job);
  if (met)
    gpu::launch(queue(), {1, threads, sizeof(Scratch)}, meet_parts,
                Met{job.parts, blocks, elements<float>(met)});
}

void CudaKernels::renew_scales(const Tensor& rows, const ScaleArgs& how) {
  const Renewal job{rows_of(rows), largest_of(how.dtype), float(std::ldexp(1.0, -how.margin)), how.of_window};
  gpu::launch(queue(), {(job.rows.count + threads - 1) / threads, threads}, renew, job);
}

// Scales of blocks begin where a tensor of their own does.
CudaKernels::Inverses CudaKernels::inverses(const ScaledArgs& how) {
  if (how.in_blocks()) return {place_of(how.a_inverse), place_of(how.b_inverse)};
  const auto *a = elements<float>(how.a_inverse), *b = elements<float>(how.b_inverse);
  if (scale_lies_well(how.a_inverse) && scale_lies_well(how.b_inverse)) return {a, b};
  if (!scale_space_) scale_space_ = workspace({scale_space});
  auto* to = elements<float>(scale_space_);
  gpu::launch(queue(), {1, 32}, bring_inverses, a, b, to);
  return {to, to + 4};
}

// The library wants sizes and places of sixteen bytes of a result, too, and of scales; what is beyond goes to
// memory of its own.
void CudaKernels::scaled_matmul(const Tensor& out, const Tensor& a, const Tensor& b, const ScaledArgs& how) {
  ready_products();
  const Rows to = rows_of(out);
  const bool widen = !knows_blocks(how.a_blocks, device_->capability());
  const bool direct = scaled_in_place(out, how, widen);
  const Tensor left = widen ? widened(a, how.a_inverse, how.a_blocks) : a,
               right = widen ? widened(b, how.b_inverse, how.b_blocks) : b;
  const Tensor whole = direct ? out : workspace({a.dim(0), b.dim(0)});
  Products::Call call{.out = whole,
                      .a = left,
                      .b = right,
                      .read_b = Read::transposed,
                      .accumulate = direct && how.accumulate,
                      .workspace = product_space(),
                      .queue = &queue()};
  if (!widen) {
    const Inverses scales = inverses(how);
    call.a_inverse = scales.a;
    call.b_inverse = scales.b;
    call.a_blocks = how.a_blocks;
    call.b_blocks = how.b_blocks;
  }
  if (direct) call.bias = how.bias;
  products_->multiply(call);
  if (direct) return;
  const Rows from = rows_of(whole.slice(0, 0, out.dim(0)).slice(1, 0, out.dim(1)));
  run_pass<1, 3>(queue(), {to}, {from, for_every_row(how.bias, to.count), how.accumulate ? to : Rows{}},
                 SumOfThree{});
}

}  // namespace weft
