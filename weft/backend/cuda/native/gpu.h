// What kernels see of a GPU when nvcc compiles them: one PTX instruction a function. Its twin
// tests/support/gpu/gpu.h says the same on a processor; the include path chooses.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

#include "weft/backend/cuda/launch.h"
#include "weft/base/half.h"
#include "weft/tensor/f8_rounding.h"

namespace gpu {

/// Before a launch (launch.h): a block has more than 48 KiB of shared memory where it was said that it may.
template <class... Wanted>
void prepare(void (*kernel)(Wanted...), const Shape& shape) {
  if (shape.shared > 48 << 10)
    check_launch(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shape.shared)),
                 shape);
}

/// The block's shared memory as one struct: sizeof is what the launch asks for.
template <class T>
__device__ __forceinline__ T& shared() {
  asm("// shared %0" ::"n"(int(sizeof(T))));  // no instruction: tools/gpu_kernels.py reads it in the PTX
  extern __shared__ __align__(128) unsigned char bytes[];
  return *reinterpret_cast<T*>(bytes);
}
__device__ __forceinline__ std::uint32_t place(const void* at) {  // in shared memory
  return std::uint32_t(__cvta_generic_to_shared(at));
}

/// a / b within two units of the last place, for b below 2^126: a reciprocal and a product.
__device__ __forceinline__ float divide(float a, float b) { return __fdividef(a, b); }

/// 2^x within two units of the last place; what is too small to be a normal number is 0.
__device__ __forceinline__ float power_of_two(float x) {
  float out;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
}

// ---- whole vectors
template <class Vector>
__device__ __forceinline__ Vector load(const void* from) {
  return *static_cast<const Vector*>(from);
}
template <class Vector>
__device__ __forceinline__ void store(void* to, Vector vector) {
  *static_cast<Vector*>(to) = vector;
}

// ---- pairs of small floats: Half is weft::bf16 or weft::f16
template <class Half>
inline constexpr bool is_bf16 = false;
template <>
inline constexpr bool is_bf16<weft::bf16> = true;

template <class Half>
__device__ __forceinline__ float low(std::uint32_t pair) {
  if constexpr (is_bf16<Half>) return __uint_as_float(pair << 16);
  float out;
  asm("{.reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, l;}" : "=f"(out) : "r"(pair));
  return out;
}
template <class Half>
__device__ __forceinline__ float high(std::uint32_t pair) {
  if constexpr (is_bf16<Half>) return __uint_as_float(pair & 0xFFFF0000U);
  float out;
  asm("{.reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, h;}" : "=f"(out) : "r"(pair));
  return out;
}
template <class Half>
__device__ __forceinline__ std::uint32_t pack(float low, float high) {
  std::uint32_t out;
  if constexpr (is_bf16<Half>)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
  return out;
}

// ---- pairs of eight bits: F8 is weft::f8e4m3 or weft::f8e5m2
template <class F8>
inline constexpr bool is_e4m3 = false;
template <>
inline constexpr bool is_e4m3<weft::f8e4m3> = true;

/// Codes of two numbers as weft::saturated<F8>() has them, low's below; compute capabilities below 8.9 have
/// no instruction for it. Which code of NaN is not said.
template <class F8>
__device__ __forceinline__ std::uint32_t pack_eights(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 890
  return weft::saturated<F8>(low).bits | std::uint32_t(weft::saturated<F8>(high).bits) << 8;
#else
  std::uint16_t out;
  if constexpr (is_e4m3<F8>)
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(out) : "f"(high), "f"(low));
  else
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(out) : "f"(high), "f"(low));
  return out;
#endif
}

// ---- copies that the thread does not wait for
/// 16 bytes to shared memory; zeros where not wanted.
__device__ __forceinline__ void copy_async(void* to, const void* from, bool wanted = true) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place(to)), "l"(from),
               "r"(wanted ? 16 : 0)
               : "memory");
}
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int groups_left>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(groups_left) : "memory");
}

// ---- tensor cores
/// ldmatrix.x4: four 8 x 8 matrices of 16 bits; lane l names row l % 8 of matrix l / 8.
template <bool transposed = false>
__device__ __forceinline__ void load_matrices(std::uint32_t (&out)[4], const void* row) {
  if constexpr (transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(place(row))
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(place(row))
                 : "memory");
}
/// mma.m16n8k16: d [16, 8] += a [16, 16] b [16, 8], each spread over the warp.
template <class Half>
__device__ __forceinline__ void multiply(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                         std::uint32_t b1) {
  if constexpr (is_bf16<Half>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace gpu
