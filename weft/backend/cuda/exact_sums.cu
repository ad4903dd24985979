// Exact sums of numbers or of their squares, as digits of tensor/exact_sum.h: whole numbers, so that no order
// of adding shows. A thread keeps digits of its own in shared memory, a block adds those of its threads up.
#include "weft/backend/cuda/kernels.h"
#include "weft/backend/cuda/pointwise.h"
#include "weft/backend/cuda/space.h"
#include "weft/tensor/exact_sum.h"

namespace weft {
namespace {

using namespace cuda;

constexpr int threads = 256, most_blocks = most_exact_blocks;

struct Exact {
  Rows x;
  std::int64_t chunks, total;
  double* parts;   // [blocks, digits + 1]; the last of each is what is not finite
  double* digits;  // of the result
  int blocks;
  bool squares;
};
struct Digits {
  std::int64_t of[exact_digits][threads];
  double not_finite[threads];
};

/// Adds whole 2^exponent to this thread's digits; no bit lies below the lowest.
__device__ __forceinline__ void add_whole(Digits& digits, std::uint64_t whole, int exponent, bool negative) {
  const int shift = exponent - exact_lowest_exponent, first = shift / exact_digit_bits;
  const std::uint64_t low = (whole & 0xFFFFFFFFU) << shift % exact_digit_bits;
  const std::uint64_t high = (whole >> 32) << shift % exact_digit_bits;
  const std::uint64_t pieces[3] = {low & 0xFFFFFFFFU, (low >> 32) + (high & 0xFFFFFFFFU), high >> 32};
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    if (pieces[i] == 0) continue;
    std::int64_t& digit = digits.of[first + i][threadIdx.x];
    digit += negative ? -std::int64_t(pieces[i]) : std::int64_t(pieces[i]);
  }
}

__device__ __forceinline__ void add_number(Digits& digits, float x, bool square) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const int field = int(bits >> 23 & 0xFFU);
  if (field == 0xFF) {
    digits.not_finite[threadIdx.x] += square ? double(x) * double(x) : double(x);
    return;
  }
  const std::uint64_t whole = (bits & 0x7FFFFFU) | (field == 0 ? 0U : 0x800000U);
  const int exponent = (field == 0 ? 1 : field) - 150;
  if (square)
    add_whole(digits, whole * whole, 2 * exponent, false);
  else
    add_whole(digits, whole, exponent, bits >> 31 != 0);
}

__global__ void __launch_bounds__(threads) add_blocks(Exact job) {
  auto& digits = gpu::shared<Digits>();
  for (int d = 0; d < exact_digits; ++d) digits.of[d][threadIdx.x] = 0;
  digits.not_finite[threadIdx.x] = 0;
  for (std::int64_t c = std::int64_t(blockIdx.x) * threads + threadIdx.x; c < job.total;
       c += std::int64_t(job.blocks) * threads) {
    const std::int64_t row = row_of(c, job.chunks, job.total), column = (c - row * job.chunks) * 8;
    const Eight e = read(job.x, start_of(job.x, row), column);
#pragma unroll
    for (int i = 0; i < 8; ++i) add_number(digits, e.x[i], job.squares);
  }
  __syncthreads();
  const int d = int(threadIdx.x);
  if (d < exact_digits) {
    std::int64_t sum = 0;
    for (int i = 0; i < threads; ++i) sum += digits.of[d][i];
    digits.of[d][0] = sum;  // nobody else reads this row
  }
  double* parts = job.parts + std::int64_t(blockIdx.x) * (exact_digits + 1);
  if (d == exact_digits) {
    double sum = 0;
    for (int i = 0; i < threads; ++i) sum += digits.not_finite[i];
    parts[exact_digits] = sum;
  }
  __syncthreads();
  if (d != 0) return;
  std::int64_t up = 0;
  for (int i = 0; i < exact_digits; ++i) {
    const std::int64_t digit = digits.of[i][0] + up;
    const bool last = i + 1 == exact_digits;
    up = last ? 0 : digit >> exact_digit_bits;
    parts[i] = double(last ? digit : digit & 0xFFFFFFFF);
  }
}

struct Line {
  double parts[exact_digits + 1][32], of[exact_digits];
};

/// A warp takes a digit, or what is not finite, of every block; a lane every 32nd block.
__global__ void __launch_bounds__(32 * (exact_digits + 1)) add_parts(Exact job) {
  auto& line = gpu::shared<Line>();
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32, d = int(threadIdx.x);
  double part = 0;
#pragma unroll 4
  for (int block = lane; block < job.blocks; block += 32)
    part += job.parts[block * (exact_digits + 1) + warp];
  line.parts[warp][lane] = part;
  __syncthreads();
  if (d < exact_digits) {
    double sum = job.digits[d];
    for (int i = 0; i < 32; ++i) sum += line.parts[d][i];
    if (d + 1 == exact_digits)
      for (int i = 0; i < 32; ++i) sum += line.parts[exact_digits][i];
    line.of[d] = sum;
  }
  __syncthreads();
  if (d != 0) return;
  double up = 0;
  for (int i = 0; i + 1 < exact_digits; ++i) {
    const double digit = line.of[i] + up;
    up = floor(digit / 0x1p32);
    job.digits[i] = digit - up * 0x1p32;
  }
  job.digits[exact_digits - 1] = line.of[exact_digits - 1] + up;
}

void add_up(Queue& queue, Exact job) {
  job.chunks = chunks_of(job.x.width);
  job.total = job.chunks * job.x.count;
  const std::int64_t blocks = (job.total + threads - 1) / threads;
  job.blocks = int(blocks < 1 ? 1 : blocks > most_blocks ? most_blocks : blocks);
  gpu::launch(queue, {job.blocks, threads, sizeof(Digits)}, add_blocks, job);
  gpu::launch(queue, {1, 32 * (exact_digits + 1), sizeof(Line)}, add_parts, job);
}

// ---- norms

struct Ratios {
  float* out;
  const double* digits;  // [count, sums, digits]
  std::int64_t count;
  int sums;
  double least, most;
  float of_zero;
};

/// The number that digits stand for, and the bits that exact_value() has on the host.
__device__ __forceinline__ double value_of(const double* digits) {
  double carried[exact_digits], up = 0;
#pragma unroll
  for (int i = 0; i + 1 < exact_digits; ++i) {
    const double digit = digits[i] + up;
    up = floor(digit / 0x1p32);
    carried[i] = digit - up * 0x1p32;
  }
  const double last = digits[exact_digits - 1];
  if (last - last != 0) return last;
  carried[exact_digits - 1] = last + up;
  double value = 0, unit = 0x1p224;  // of the last digit
#pragma unroll
  for (int i = exact_digits - 1; i >= 0; --i) {
    value += carried[i] * unit;
    unit *= 0x1p-32;
  }
  return value;
}
static_assert(exact_digit_bits * (exact_digits - 1) + exact_lowest_exponent == 224);

__global__ void __launch_bounds__(64) divide_norms(Ratios job) {
  const std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= job.count) return;
  const double* mine = job.digits + i * job.sums * exact_digits;
  const double a = job.sums == 2 ? sqrt(value_of(mine)) : 1;
  const double b = sqrt(value_of(mine + (job.sums - 1) * exact_digits));
  const double ratio = a / b;
  const double within = ratio < job.least ? job.least : job.most < ratio ? job.most : ratio;
  job.out[i] = a == 0 || b == 0 ? job.of_zero : float(within);
}

}  // namespace

void CudaKernels::norm_ratios(const Tensor& out, const Tensor& digits, const NormRatioArgs& how) {
  const Ratios job{
      elements<float>(out), elements<double>(digits), out.dim(0), int(digits.dim(1)), how.least, how.most,
      how.of_zero};
  if (job.count > 0) gpu::launch(queue(), {(job.count + 63) / 64, 64}, divide_norms, job);
}

void CudaKernels::sum_exact(const Tensor& digits, const Tensor& x) {
  const Tensor parts = workspace({most_blocks, exact_digits + 1}, Dtype::f64);
  add_up(queue(), {flat(x)[0], 0, 0, elements<double>(parts), elements<double>(digits), 0, false});
}

void CudaKernels::sum_squares(const Tensor& digits, const Tensor& x) {
  const Tensor parts = workspace({most_blocks, exact_digits + 1}, Dtype::f64);
  add_up(queue(), {flat(x)[0], 0, 0, elements<double>(parts), elements<double>(digits), 0, true});
}

}  // namespace weft
