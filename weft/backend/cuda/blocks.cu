// Numbers as small integers with a scale a block: a warp for each.
// nvcc: -fmad=false
//
// Products are rounded before they are added.
#include <bit>

#include "weft/backend/cuda/kernels.h"
#include "weft/backend/cuda/reduce.h"
#include "weft/backend/cuda/rows.h"

namespace weft {
namespace {

using namespace cuda;

struct Packing {
  Rows numbers;
  std::uint8_t* packed;
  std::int64_t count, block, bytes;  // numbers, and of a whole block numbers and bytes
  int bits;
  bool accumulate;
};

/// This warp's block; none where count is 0.
struct Mine {
  std::int64_t at, count;
  std::uint8_t* packed;
};
__device__ __forceinline__ Mine mine_of(const Packing& job) {
  const std::int64_t i = std::int64_t(blockIdx.x) * 8 + threadIdx.x / 32, at = i * job.block;
  const std::int64_t left = job.count - at;
  return {at, left < job.block ? left : job.block, job.packed + i * job.bytes};
}

__global__ void __launch_bounds__(256) pack_all(Packing job) {
  const Mine mine = mine_of(job);
  if (mine.count <= 0) return;
  const int lane = int(threadIdx.x) % 32, most = (1 << (job.bits - 1)) - 1;
  float greatest = 0;
  bool odd = false;
  for (std::int64_t i = lane; i < mine.count; i += 32) {
    const float size = fabsf(get(job.numbers, mine.at + i));
    odd = odd || !(size < INFINITY);
    greatest = fmaxf(greatest, size);
  }
  odd = __ballot_sync(~0U, odd) != 0;
  greatest = over_warp(greatest, Greater{});
  float scale = greatest / float(most);
  if (scale < 0x1p-126F) scale = 0;
  const auto word = odd ? 0x7fc00000U : std::bit_cast<std::uint32_t>(scale);
  if (lane < 4) mine.packed[lane] = std::uint8_t(word >> (8 * lane));
  const bool empty = odd || scale == 0;
  const float inverse = empty ? 0 : 1 / scale;
  const auto code = [&](std::int64_t i) {
    return empty || i >= mine.count ? 0 : int(rintf(get(job.numbers, mine.at + i) * inverse));
  };
  const int a_byte = job.bits == 8 ? 1 : 2;
  for (std::int64_t i = std::int64_t(lane) * a_byte; i < mine.count; i += 32 * a_byte)
    mine.packed[4 + i / a_byte] =
        std::uint8_t(a_byte == 1 ? code(i) : (code(i) & 15) | (code(i + 1) & 15) << 4);
}

__global__ void __launch_bounds__(256) unpack_all(Packing job) {
  const Mine mine = mine_of(job);
  if (mine.count <= 0) return;
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word |= std::uint32_t(mine.packed[i]) << (8 * i);
  const auto scale = std::bit_cast<float>(word);
  for (std::int64_t i = std::int64_t(threadIdx.x) % 32; i < mine.count; i += 32) {
    const int byte = mine.packed[4 + (job.bits == 8 ? i : i / 2)];
    const int code = job.bits == 8 ? int(std::int8_t(byte)) : int(std::int8_t(byte << (i % 2 ? 0 : 4))) >> 4;
    const float x = float(code) * scale;
    put(job.numbers, mine.at + i, job.accumulate ? get(job.numbers, mine.at + i) + x : x);
  }
}

void run(Queue& queue, const Tensor& numbers, const Tensor& packed, const BlockCode& how,
         void (*kernel)(Packing)) {
  const std::int64_t count = numbers.elements(), blocks = (count + how.block - 1) / how.block;
  if (count == 0) return;
  gpu::launch(queue, {(blocks + 7) / 8, 256}, kernel,
              Packing{rows_of(numbers), elements<std::uint8_t>(packed), count, how.block,
                      packed_bytes(how.block, how), how.bits, how.accumulate});
}

}  // namespace

void CudaKernels::pack_blocks(const Tensor& packed, const Tensor& x, const BlockCode& how) {
  run(queue(), x, packed, how, pack_all);
}

void CudaKernels::unpack_blocks(const Tensor& out, const Tensor& packed, const BlockCode& how) {
  run(queue(), out, packed, how, unpack_all);
}

}  // namespace weft
