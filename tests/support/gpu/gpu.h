// What kernels see of a GPU when g++ or clang++ compiles them: threads are fibers, memory is shadowed. Its
// twin weft/backend/cuda/native/gpu.h says the same in PTX; the include path chooses.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tests/support/gpu/emulated.h"
#include "weft/backend/cuda/launch.h"
#include "weft/base/half.h"
#include "weft/tensor/f8_rounding.h"

// The words that CUDA adds to C++: here, and in the twin by nvcc itself.
#define __global__                                                     // manners: a word of CUDA
#define __device__                                                     // manners: a word of CUDA
#define __forceinline__ inline                                         // manners: a word of CUDA
#define __launch_bounds__(...)                                         // manners: a word of CUDA
#define threadIdx (::emulated::Numbered{::emulated::thread_number()})  // manners: a word of CUDA
#define blockIdx (::emulated::Numbered{::emulated::block_number()})    // manners: a word of CUDA
#define blockDim (::emulated::Numbered{::emulated::block_size()})      // manners: a word of CUDA
#define gridDim (::emulated::Numbered{::emulated::grid_size()})        // manners: a word of CUDA

namespace emulated {
struct Numbered {  // blocks and grids here have one dimension
  unsigned x;
};
}  // namespace emulated

struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(8) float2 {
  float x, y;
};

inline void __syncthreads(int line = __builtin_LINE()) { emulated::barrier(line); }

inline void __syncwarp(unsigned mask = ~0U, int line = __builtin_LINE()) {
  emulated::meet(mask, {"__syncwarp", line}, nullptr, nullptr,
                 [](const emulated::Handed&) { emulated::order_warp(); });
}

namespace emulated {

struct Sent {
  std::uint32_t bits;
  int from;  // the lane that is read
};
void exchange(const Handed& all);  // warp.cpp, where nothing is watched
void count_votes(const Handed& all);
void load_matrices(const Handed& all);
template <class Half>
void multiply_tiles(const Handed& all);
inline int lane_of() { return int(thread_number()) & 31; }  // blocks here have one dimension

template <class T>
T shuffle(unsigned mask, T value, int from, int line) {
  if constexpr (sizeof(T) == 8) {  // one after the other, as CUDA does it
    auto halves = std::bit_cast<std::array<std::uint32_t, 2>>(value);
    for (std::uint32_t& half : halves) half = shuffle(mask, half, from, line);
    return std::bit_cast<T>(halves);
  } else {
    const Sent in{std::bit_cast<std::uint32_t>(value), from};
    Sent out{};
    meet(mask, {"a shuffle", line}, &in, &out, exchange);
    return std::bit_cast<T>(out.bits);
  }
}

/// What over_warp() of weft/backend/cuda/reduce.h comes to by exchanges with ever nearer lanes, lane by lane.
template <class T, class Combine>
__attribute__((no_sanitize("thread"))) void fold(const Handed& all) {
  T x[32], y[32];
  for (int lane = 0; lane < 32; ++lane) std::memcpy(&x[lane], all.in[lane], sizeof(T));
  for (int by = 16; by > 0; by /= 2) {
    for (int lane = 0; lane < 32; ++lane) y[lane] = Combine{}(x[lane], x[lane ^ by]);
    std::memcpy(x, y, sizeof x);
  }
  for (int lane = 0; lane < 32; ++lane) std::memcpy(all.out[lane], &x[lane], sizeof(T));
}

/// A launch of a kernel with copies of these arguments. Unwatched as far as the kernel's own body: they lie
/// in the host's memory.
template <class... Wanted, std::size_t... places>
Bound bound_at(const void* kernel, void** arguments, std::index_sequence<places...>) {
  const std::tuple<Wanted...> copies{*static_cast<const Wanted*>(arguments[places])...};
  const auto call = reinterpret_cast<void (*)(Wanted...)>(const_cast<void*>(kernel));
  return [call, copies](const Grid& grid) {
    const auto thread = [&]() __attribute__((no_sanitize("thread"))) {
      call(Wanted(std::get<places>(copies))...);
    };
    const auto run = [](const void* it) __attribute__((no_sanitize("thread"))) {
      (*static_cast<decltype(&thread)>(it))();
    };
    run_grid(grid, run, &thread);
  };
}
template <class... Wanted>
Bound bound(const void* kernel, void** arguments) {
  return bound_at<Wanted...>(kernel, arguments, std::index_sequence_for<Wanted...>());
}

}  // namespace emulated

template <class T>
T __shfl_sync(unsigned mask, T value, int from, int line = __builtin_LINE()) {
  return emulated::shuffle(mask, value, from & 31, line);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int by, int line = __builtin_LINE()) {
  return emulated::shuffle(mask, value, emulated::lane_of() ^ by, line);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int line = __builtin_LINE()) {
  const int lane = emulated::lane_of();
  return emulated::shuffle(mask, value, lane >= int(by) ? lane - int(by) : lane, line);
}
inline unsigned __ballot_sync(unsigned mask, bool yes, int line = __builtin_LINE()) {
  unsigned out = 0;
  emulated::meet(mask, {"a vote", line}, &yes, &out, emulated::count_votes);
  return out;
}
using std::isfinite;
using std::isinf;
using std::isnan;
inline int __popc(unsigned x) { return std::popcount(x); }
/// Four of the eight bytes of low and high, a number of four bits each.
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned which) {
  const std::uint64_t all = std::uint64_t(high) << 32 | low;
  unsigned out = 0;
  for (unsigned i = 0; i < 32; i += 8) out |= unsigned(all >> (which >> i / 2 & 7) * 8 & 0xFF) << i;
  return out;
}
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }

namespace weft::cuda {

/// In the place of that of reduce.h, since it asks for more of its arguments: in one meeting what that does
/// in five, a quarter of the time of small steps. gpu_wrappers_test.cpp holds the one against the other.
template <class T, class Combine>
requires std::is_empty_v<Combine> T over_warp(T x, Combine) {
  T out{};
  emulated::meet(~0U, {"over_warp", __builtin_LINE()}, &x, &out, emulated::fold<T, Combine>);
  return out;
}

}  // namespace weft::cuda

namespace gpu {

/// Before a launch (launch.h): the fake runtime is told how a kernel of these arguments is called.
template <class... Wanted>
void prepare(void (*kernel)(Wanted...), const Shape&) {
  emulated::know(reinterpret_cast<const void*>(kernel), emulated::bound<Wanted...>);
}

/// The block's shared memory as one struct: sizeof is what the launch asks for.
template <class T>
T& shared() {
  return *static_cast<T*>(emulated::shared_memory());
}

inline float divide(float a, float b) { return a / b; }
inline float power_of_two(float x) { return std::exp2(x); }

// ---- whole vectors
// In functions of their own: a compiler for processors cuts a uint4 into four loads, and then nobody sees
// that a GPU would have refused the address.
template <class Vector>
Vector load(const void* from) {
  emulated::must_be_aligned(from, sizeof(Vector), __builtin_return_address(0));
  return *static_cast<const Vector*>(from);
}
template <class Vector>
void store(void* to, Vector vector) {
  emulated::must_be_aligned(to, sizeof(Vector), __builtin_return_address(0));
  *static_cast<Vector*>(to) = vector;
}

// ---- pairs of small floats, and the arithmetic that a compiler may not change
/// Half is weft::bf16 or weft::f16.
template <class Half>
float low(std::uint32_t pair) {
  return float(Half::from_bits(std::uint16_t(pair)));
}
template <class Half>
float high(std::uint32_t pair) {
  return float(Half::from_bits(std::uint16_t(pair >> 16)));
}
template <class Half>
std::uint32_t pack(float low, float high) {
  return Half(low).bits | std::uint32_t(Half(high).bits) << 16;
}

/// F8 is weft::f8e4m3 or weft::f8e5m2.
template <class F8>
std::uint32_t pack_eights(float low, float high) {
  return weft::saturated<F8>(low).bits | std::uint32_t(weft::saturated<F8>(high).bits) << 8;
}

// ---- copies that the thread does not wait for
/// 16 bytes to shared memory; zeros where not wanted.
inline void copy_async(void* to, const void* from, bool wanted = true) {
  emulated::copy_async(to, from, wanted);
}
inline void commit_copies() { emulated::commit_copies(); }
template <int groups_left>
void wait_copies() {
  emulated::wait_copies(groups_left);
}

// ---- tensor cores
struct Loaded {
  const void* row;
  bool transposed;
};
/// ldmatrix.x4: four 8 x 8 matrices of 16 bits; lane l names row l % 8 of matrix l / 8.
template <bool transposed = false>
void load_matrices(std::uint32_t (&out)[4], const void* row, int line = __builtin_LINE()) {
  emulated::touch(row, 16, emulated::Touch::read, __builtin_return_address(0));
  const Loaded in{row, transposed};
  emulated::meet(~0U, {"load_matrices", line}, &in, out, emulated::load_matrices);
}

struct Fragments {
  std::uint32_t a[4], b[2];
};
/// mma.m16n8k16: d [16, 8] += a [16, 16] b [16, 8], each spread over the warp.
template <class Half>
void multiply(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1,
              int line = __builtin_LINE()) {
  const Fragments in{{a[0], a[1], a[2], a[3]}, {b0, b1}};
  emulated::meet(~0U, {"multiply", line}, &in, d, emulated::multiply_tiles<Half>);
}

}  // namespace gpu
