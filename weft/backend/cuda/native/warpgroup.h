// Products of four warps beside each other, a warpgroup, which go on while the threads do something else: of
// compute capability 9.0 alone (wgmma, sm_90a), and by these functions nothing anywhere else. Its twin is in
// tests/support/gpu.
//
// Threads say begin_products() when what the products read and add to is in its registers; then products, of
// which those one after another may add to the same sums; commit_products(), which closes a group of them;
// and wait_products(). Until then nobody touches the sums, the left operand in registers, or the tiles.
#pragma once

#include <gpu.h>

#include "weft/backend/cuda/matrix_names.h"

namespace gpu {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
inline constexpr bool has_warpgroups = true;
#else
inline constexpr bool has_warpgroups = false;
#endif

__device__ __forceinline__ Matrix matrix_at(const void* at) { return matrix_of(place(at)); }

/// What this thread has written to shared memory, or has waited for of its copies, may be read by products
/// behind the next barrier.
__device__ __forceinline__ void show_products() {
  if constexpr (has_warpgroups) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ __forceinline__ void begin_products() {
  if constexpr (has_warpgroups) asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void commit_products() {
  if constexpr (has_warpgroups) asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int groups_left>
__device__ __forceinline__ void wait_products() {
  if constexpr (has_warpgroups)
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(groups_left) : "memory");
}
/// x, which is no negative number, is computed before whatever is said behind this. What reads no sums of
/// products the assembler would else compute when it has waited for them: it goes past no branch.
__device__ __forceinline__ void before_what_follows(float x) {
  if constexpr (has_warpgroups)
    asm volatile("{.reg .pred p; setp.lt.f32 p, %0, 0f00000000; @p trap;}" ::"f"(x) : "memory");
}

/// d [64, 64] = a [64, 16] times the 64 rows of b, 16 columns of each; or += that. A warp has 16 rows of d.
template <class Half, bool adds>
__device__ __forceinline__ void multiply_rows(float (&d)[8][4], Matrix a, Matrix b) {
  if constexpr (has_warpgroups && is_bf16<Half>)
    asm volatile(
        "{.reg .pred p; .reg .b64 a, b; setp.ne.b32 p, %34, 0; mov.b64 a, {%32, %35}; mov.b64 b, {%33, %35}; "
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "a, b, p, 1, 1, 0, 0;}"
        : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), "+f"(d[1][1]),
          "+f"(d[1][2]), "+f"(d[1][3]), "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]),
          "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3]), "+f"(d[4][0]), "+f"(d[4][1]),
          "+f"(d[4][2]), "+f"(d[4][3]), "+f"(d[5][0]), "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]),
          "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]), "+f"(d[7][0]), "+f"(d[7][1]),
          "+f"(d[7][2]), "+f"(d[7][3])
        : "r"(a.low), "r"(b.low), "n"(int(adds)), "n"(matrix_form)
        : "memory");
  else if constexpr (has_warpgroups)
    asm volatile(
        "{.reg .pred p; .reg .b64 a, b; setp.ne.b32 p, %34, 0; mov.b64 a, {%32, %35}; mov.b64 b, {%33, %35}; "
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "a, b, p, 1, 1, 0, 0;}"
        : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), "+f"(d[1][1]),
          "+f"(d[1][2]), "+f"(d[1][3]), "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]),
          "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3]), "+f"(d[4][0]), "+f"(d[4][1]),
          "+f"(d[4][2]), "+f"(d[4][3]), "+f"(d[5][0]), "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]),
          "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]), "+f"(d[7][0]), "+f"(d[7][1]),
          "+f"(d[7][2]), "+f"(d[7][3])
        : "r"(a.low), "r"(b.low), "n"(int(adds)), "n"(matrix_form)
        : "memory");
}
/// The same with 32 rows of b.
template <class Half, bool adds>
__device__ __forceinline__ void multiply_rows(float (&d)[4][4], Matrix a, Matrix b) {
  if constexpr (has_warpgroups && is_bf16<Half>)
    asm volatile(
        "{.reg .pred p; .reg .b64 a, b; setp.ne.b32 p, %18, 0; mov.b64 a, {%16, %19}; mov.b64 b, {%17, %19}; "
        "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
        "a, b, p, 1, 1, 0, 0;}"
        : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), "+f"(d[1][1]),
          "+f"(d[1][2]), "+f"(d[1][3]), "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]),
          "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3])
        : "r"(a.low), "r"(b.low), "n"(int(adds)), "n"(matrix_form)
        : "memory");
  else if constexpr (has_warpgroups)
    asm volatile(
        "{.reg .pred p; .reg .b64 a, b; setp.ne.b32 p, %18, 0; mov.b64 a, {%16, %19}; mov.b64 b, {%17, %19}; "
        "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
        "a, b, p, 1, 1, 0, 0;}"
        : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), "+f"(d[1][1]),
          "+f"(d[1][2]), "+f"(d[1][3]), "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]),
          "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3])
        : "r"(a.low), "r"(b.low), "n"(int(adds)), "n"(matrix_form)
        : "memory");
}

/// Columns [8 first, 8 first + 64) of d [64, 8 count] += a [64, 16] times 16 rows of b. A warp has its rows
/// of a as multiply() has them.
template <class Half, int first, int count>
__device__ __forceinline__ void multiply_columns(float (&d)[count][4], const std::uint32_t (&a)[4],
                                                 Matrix b) {
  if constexpr (has_warpgroups && is_bf16<Half>)
    asm volatile(
        "{.reg .pred p; .reg .b64 b; setp.eq.b32 p, 0, 0; mov.b64 b, {%36, %37}; "
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "{%32, %33, %34, %35}, b, p, 1, 1, 1;}"
        : "+f"(d[first + 0][0]), "+f"(d[first + 0][1]), "+f"(d[first + 0][2]), "+f"(d[first + 0][3]),
          "+f"(d[first + 1][0]), "+f"(d[first + 1][1]), "+f"(d[first + 1][2]), "+f"(d[first + 1][3]),
          "+f"(d[first + 2][0]), "+f"(d[first + 2][1]), "+f"(d[first + 2][2]), "+f"(d[first + 2][3]),
          "+f"(d[first + 3][0]), "+f"(d[first + 3][1]), "+f"(d[first + 3][2]), "+f"(d[first + 3][3]),
          "+f"(d[first + 4][0]), "+f"(d[first + 4][1]), "+f"(d[first + 4][2]), "+f"(d[first + 4][3]),
          "+f"(d[first + 5][0]), "+f"(d[first + 5][1]), "+f"(d[first + 5][2]), "+f"(d[first + 5][3]),
          "+f"(d[first + 6][0]), "+f"(d[first + 6][1]), "+f"(d[first + 6][2]), "+f"(d[first + 6][3]),
          "+f"(d[first + 7][0]), "+f"(d[first + 7][1]), "+f"(d[first + 7][2]), "+f"(d[first + 7][3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.low), "n"(matrix_form)
        : "memory");
  else if constexpr (has_warpgroups)
    asm volatile(
        "{.reg .pred p; .reg .b64 b; setp.eq.b32 p, 0, 0; mov.b64 b, {%36, %37}; "
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "{%32, %33, %34, %35}, b, p, 1, 1, 1;}"
        : "+f"(d[first + 0][0]), "+f"(d[first + 0][1]), "+f"(d[first + 0][2]), "+f"(d[first + 0][3]),
          "+f"(d[first + 1][0]), "+f"(d[first + 1][1]), "+f"(d[first + 1][2]), "+f"(d[first + 1][3]),
          "+f"(d[first + 2][0]), "+f"(d[first + 2][1]), "+f"(d[first + 2][2]), "+f"(d[first + 2][3]),
          "+f"(d[first + 3][0]), "+f"(d[first + 3][1]), "+f"(d[first + 3][2]), "+f"(d[first + 3][3]),
          "+f"(d[first + 4][0]), "+f"(d[first + 4][1]), "+f"(d[first + 4][2]), "+f"(d[first + 4][3]),
          "+f"(d[first + 5][0]), "+f"(d[first + 5][1]), "+f"(d[first + 5][2]), "+f"(d[first + 5][3]),
          "+f"(d[first + 6][0]), "+f"(d[first + 6][1]), "+f"(d[first + 6][2]), "+f"(d[first + 6][3]),
          "+f"(d[first + 7][0]), "+f"(d[first + 7][1]), "+f"(d[first + 7][2]), "+f"(d[first + 7][3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.low), "n"(matrix_form)
        : "memory");
}

template <bool left_by_depth, bool right_by_depth>
__device__ __forceinline__ void multiply_bf16_panels(float (&d)[32][4], Matrix a, Matrix b) {
  asm volatile(
      "{.reg .pred p; .reg .b64 a, b; setp.eq.b32 p, 0, 0; mov.b64 a, {%128, %130}; mov.b64 b, {%129, "
      "%130}; "
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
      "a, b, p, 1, 1, %131, %132;}"
      : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), "+f"(d[1][1]),
        "+f"(d[1][2]), "+f"(d[1][3]), "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]),
        "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3]), "+f"(d[4][0]), "+f"(d[4][1]),
        "+f"(d[4][2]), "+f"(d[4][3]), "+f"(d[5][0]), "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]),
        "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]), "+f"(d[7][0]), "+f"(d[7][1]),
        "+f"(d[7][2]), "+f"(d[7][3]), "+f"(d[8][0]), "+f"(d[8][1]), "+f"(d[8][2]), "+f"(d[8][3]),
        "+f"(d[9][0]), "+f"(d[9][1]), "+f"(d[9][2]), "+f"(d[9][3]), "+f"(d[10][0]), "+f"(d[10][1]),
        "+f"(d[10][2]), "+f"(d[10][3]), "+f"(d[11][0]), "+f"(d[11][1]), "+f"(d[11][2]), "+f"(d[11][3]),
        "+f"(d[12][0]), "+f"(d[12][1]), "+f"(d[12][2]), "+f"(d[12][3]), "+f"(d[13][0]), "+f"(d[13][1]),
        "+f"(d[13][2]), "+f"(d[13][3]), "+f"(d[14][0]), "+f"(d[14][1]), "+f"(d[14][2]), "+f"(d[14][3]),
        "+f"(d[15][0]), "+f"(d[15][1]), "+f"(d[15][2]), "+f"(d[15][3]), "+f"(d[16][0]), "+f"(d[16][1]),
        "+f"(d[16][2]), "+f"(d[16][3]), "+f"(d[17][0]), "+f"(d[17][1]), "+f"(d[17][2]), "+f"(d[17][3]),
        "+f"(d[18][0]), "+f"(d[18][1]), "+f"(d[18][2]), "+f"(d[18][3]), "+f"(d[19][0]), "+f"(d[19][1]),
        "+f"(d[19][2]), "+f"(d[19][3]), "+f"(d[20][0]), "+f"(d[20][1]), "+f"(d[20][2]), "+f"(d[20][3]),
        "+f"(d[21][0]), "+f"(d[21][1]), "+f"(d[21][2]), "+f"(d[21][3]), "+f"(d[22][0]), "+f"(d[22][1]),
        "+f"(d[22][2]), "+f"(d[22][3]), "+f"(d[23][0]), "+f"(d[23][1]), "+f"(d[23][2]), "+f"(d[23][3]),
        "+f"(d[24][0]), "+f"(d[24][1]), "+f"(d[24][2]), "+f"(d[24][3]), "+f"(d[25][0]), "+f"(d[25][1]),
        "+f"(d[25][2]), "+f"(d[25][3]), "+f"(d[26][0]), "+f"(d[26][1]), "+f"(d[26][2]), "+f"(d[26][3]),
        "+f"(d[27][0]), "+f"(d[27][1]), "+f"(d[27][2]), "+f"(d[27][3]), "+f"(d[28][0]), "+f"(d[28][1]),
        "+f"(d[28][2]), "+f"(d[28][3]), "+f"(d[29][0]), "+f"(d[29][1]), "+f"(d[29][2]), "+f"(d[29][3]),
        "+f"(d[30][0]), "+f"(d[30][1]), "+f"(d[30][2]), "+f"(d[30][3]), "+f"(d[31][0]), "+f"(d[31][1]),
        "+f"(d[31][2]), "+f"(d[31][3])
      : "r"(a.low), "r"(b.low), "n"(matrix_form), "n"(int(left_by_depth)), "n"(int(right_by_depth))
      : "memory");
}
template <bool left_by_depth, bool right_by_depth>
__device__ __forceinline__ void multiply_f16_panels(float (&d)[32][4], Matrix a, Matrix b) {
  asm volatile(
      "{.reg .pred p; .reg .b64 a, b; setp.eq.b32 p, 0, 0; mov.b64 a, {%128, %130}; mov.b64 b, {%129, "
      "%130}; "
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
      "a, b, p, 1, 1, %131, %132;}"
      : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), "+f"(d[1][1]),
        "+f"(d[1][2]), "+f"(d[1][3]), "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]),
        "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3]), "+f"(d[4][0]), "+f"(d[4][1]),
        "+f"(d[4][2]), "+f"(d[4][3]), "+f"(d[5][0]), "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]),
        "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]), "+f"(d[7][0]), "+f"(d[7][1]),
        "+f"(d[7][2]), "+f"(d[7][3]), "+f"(d[8][0]), "+f"(d[8][1]), "+f"(d[8][2]), "+f"(d[8][3]),
        "+f"(d[9][0]), "+f"(d[9][1]), "+f"(d[9][2]), "+f"(d[9][3]), "+f"(d[10][0]), "+f"(d[10][1]),
        "+f"(d[10][2]), "+f"(d[10][3]), "+f"(d[11][0]), "+f"(d[11][1]), "+f"(d[11][2]), "+f"(d[11][3]),
        "+f"(d[12][0]), "+f"(d[12][1]), "+f"(d[12][2]), "+f"(d[12][3]), "+f"(d[13][0]), "+f"(d[13][1]),
        "+f"(d[13][2]), "+f"(d[13][3]), "+f"(d[14][0]), "+f"(d[14][1]), "+f"(d[14][2]), "+f"(d[14][3]),
        "+f"(d[15][0]), "+f"(d[15][1]), "+f"(d[15][2]), "+f"(d[15][3]), "+f"(d[16][0]), "+f"(d[16][1]),
        "+f"(d[16][2]), "+f"(d[16][3]), "+f"(d[17][0]), "+f"(d[17][1]), "+f"(d[17][2]), "+f"(d[17][3]),
        "+f"(d[18][0]), "+f"(d[18][1]), "+f"(d[18][2]), "+f"(d[18][3]), "+f"(d[19][0]), "+f"(d[19][1]),
        "+f"(d[19][2]), "+f"(d[19][3]), "+f"(d[20][0]), "+f"(d[20][1]), "+f"(d[20][2]), "+f"(d[20][3]),
        "+f"(d[21][0]), "+f"(d[21][1]), "+f"(d[21][2]), "+f"(d[21][3]), "+f"(d[22][0]), "+f"(d[22][1]),
        "+f"(d[22][2]), "+f"(d[22][3]), "+f"(d[23][0]), "+f"(d[23][1]), "+f"(d[23][2]), "+f"(d[23][3]),
        "+f"(d[24][0]), "+f"(d[24][1]), "+f"(d[24][2]), "+f"(d[24][3]), "+f"(d[25][0]), "+f"(d[25][1]),
        "+f"(d[25][2]), "+f"(d[25][3]), "+f"(d[26][0]), "+f"(d[26][1]), "+f"(d[26][2]), "+f"(d[26][3]),
        "+f"(d[27][0]), "+f"(d[27][1]), "+f"(d[27][2]), "+f"(d[27][3]), "+f"(d[28][0]), "+f"(d[28][1]),
        "+f"(d[28][2]), "+f"(d[28][3]), "+f"(d[29][0]), "+f"(d[29][1]), "+f"(d[29][2]), "+f"(d[29][3]),
        "+f"(d[30][0]), "+f"(d[30][1]), "+f"(d[30][2]), "+f"(d[30][3]), "+f"(d[31][0]), "+f"(d[31][1]),
        "+f"(d[31][2]), "+f"(d[31][3])
      : "r"(a.low), "r"(b.low), "n"(matrix_form), "n"(int(left_by_depth)), "n"(int(right_by_depth))
      : "memory");
}
/// d [64, 256] += a [64, 16] times b [16, 256], both in shared memory: the columns of one are 64 rows there,
/// and those of the other 256, or its 16 rows are where it lies by depth.
template <class Half, bool left_by_depth, bool right_by_depth>
__device__ __forceinline__ void multiply_panels(float (&d)[32][4], Matrix a, Matrix b) {
  if constexpr (has_warpgroups && is_bf16<Half>)
    multiply_bf16_panels<left_by_depth, right_by_depth>(d, a, b);
  else if constexpr (has_warpgroups)
    multiply_f16_panels<left_by_depth, right_by_depth>(d, a, b);
}

}  // namespace gpu
