// Scales of blocks as the library has them: on GPUs that know them it multiplies codes, on others what these
// stand for in bf16; and what its fake refuses.
#include <cublasLt.h>
#include <gtest/gtest.h>
#include <runtime.h>

#include <cmath>

#include "tests/backend/gpu_trial.h"
#include "tests/support/compare.h"
#include "tests/support/numbers.h"
#include "tests/support/refused.h"
#include "weft/backend/open.h"
#include "weft/base/random.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/scaled.h"
#include "weft/tensor/f8_blocks.h"

namespace weft {
namespace {

using enum F8Blocks;

struct Multiplied {
  F8Blocks a, b;
  Dtype out = Dtype::f32;
};

/// Numbers of many sizes, so that a scale that is missed, or another's, is seen.
Tensor of_many_sizes(Device& device, const Shape& shape, std::uint64_t operand) {
  const Draw draw({.seed = 3, .purpose = Purpose::test, .step = operand});
  std::vector<double> values(std::size_t(shape.elements()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = (2 * double(draw.uniform(i)) - 1) * std::ldexp(1, int(i / 32 % 7) - 3);
  return of(device, shape, Dtype::f32, values);
}

std::vector<double> product_by_blocks(const char* name, const Multiplied& is, bool whole) {
  const auto device = open_device(name);
  const std::int64_t m = whole ? 160 : 150, n = whole ? 192 : 130, k = 288;
  const Quantized a = ops::quantize_blocks(of_many_sizes(*device, {m, k}, 0), Dtype::f8e5m2, ops::Turned::no,
                                           is.a),
                  b = ops::quantize_blocks(of_many_sizes(*device, {k, n}, 1), Dtype::f8e4m3, ops::Turned::yes,
                                           is.b);
  const Tensor out = ops::zeros(*device, {m, n}, is.out);
  const Tensor bias = of(*device, {n}, is.out, std::vector<double>(std::size_t(n), 3));
  ops::scaled_matmul_into(out, a.codes, b.turned,
                          {a.inverses, b.turned_inverses, bias, is.out == Dtype::f32, is.a, is.b});
  device->synchronize();
  return numbers(out);
}

TEST(F8BlocksOnTheGpu, are_multiplied_as_they_are_or_by_what_they_stand_for) {
  for (const Multiplied& is :
       {Multiplied{lines_of_128, squares_of_128}, Multiplied{squares_of_128, lines_of_128},
        Multiplied{lines_of_128, lines_of_128, Dtype::bf16}, Multiplied{lines_of_32, lines_of_32},
        Multiplied{lines_of_32, lines_of_32, Dtype::f16}})
    for (const bool whole : {true, false}) {
      const std::vector<double> expected = product_by_blocks("cpu:reference", is, whole);
      for (const int capability : {8, 9, 10}) {
        const emulated::CardsHere cards({.capability = capability});
        EXPECT_EQ(difference(product_by_blocks("cuda", is, whole), expected,
                             {2 * rounding(is.out) + 1e-5, 1e-2 * rounding(is.out) + 1e-3}),
                  "")
            << capability << " " << int(is.a) << int(is.b);
        EXPECT_TRUE(emulated::take_reports().empty());
      }
    }
}

/// A product by columns of [128, 64] operands, or as asked.
struct BlocksAsked {
  int mode_a = CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F, mode_b = CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
  int capability = 9;
  std::int64_t k = 128;
  std::size_t shift = 0;  // of a's scales, in bytes
  bool scaled = true;
};

cublasStatus_t blocks_asked(const BlocksAsked& is) {
  const emulated::CardsHere cards({.capability = is.capability});
  const testing::Array memory(1 << 16);
  auto* const at = reinterpret_cast<char*>(memory.data());
  cudaMemsetAsync(at, 0, (1 << 16) * sizeof(float), nullptr);
  cublasLtMatmulDesc_t form;
  cublasLtMatmulDescCreate(&form, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  const auto set = [&](cublasLtMatmulDescAttributes_t which, const auto& value) {
    cublasLtMatmulDescSetAttribute(form, which, &value, sizeof value);
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, is.mode_a);
  set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, is.mode_b);
  if (is.scaled) {
    set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, static_cast<void*>(at + is.shift));
    set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, static_cast<void*>(at + 4096));
  }
  cublasLtMatrixLayout_t operand, out;
  cublasLtMatrixLayoutCreate(&operand, CUDA_R_8F_E4M3, std::uint64_t(is.k), 64, is.k);
  cublasLtMatrixLayoutCreate(&out, CUDA_R_32F, 64, 64, 64);
  const float one = 1, zero = 0;
  char* const d = at + 65536;
  const cublasStatus_t status = cublasLtMatmul(nullptr, form, &one, at + 8192, operand, at + 32768, operand,
                                               &zero, d, out, d, out, nullptr, nullptr, 0, nullptr);
  cudaDeviceSynchronize();
  cublasLtMatrixLayoutDestroy(operand);
  cublasLtMatrixLayoutDestroy(out);
  cublasLtMatmulDescDestroy(form);
  return status;
}

TEST(F8BlocksOnTheGpu, are_refused_where_a_gpu_does_not_know_them) {
  constexpr int lines = CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F,
                squares = CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F,
                narrow = CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0,
                whole = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
  for (const BlocksAsked& is : {BlocksAsked{}, BlocksAsked{squares, lines}, BlocksAsked{lines, lines},
                                BlocksAsked{narrow, narrow, 10}})
    EXPECT_EQ(blocks_asked(is), CUBLAS_STATUS_SUCCESS);
  for (const BlocksAsked& is :
       {BlocksAsked{squares, squares}, BlocksAsked{lines, squares, 8}, BlocksAsked{lines, squares, 10},
        BlocksAsked{narrow, narrow, 9}, BlocksAsked{lines, whole}, BlocksAsked{lines, narrow},
        BlocksAsked{narrow, narrow, 10, 16}, BlocksAsked{.shift = 8}, BlocksAsked{.scaled = false}})
    EXPECT_EQ(blocks_asked(is), CUBLAS_STATUS_NOT_SUPPORTED)
        << is.mode_a << " " << is.mode_b << " " << is.capability << " " << is.k;
}

TEST(F8BlocksOnTheGpu, are_refused_of_a_library_that_knows_none) {
  const emulated::CardsHere cards({.capability = 9, .products = 120804});
  EXPECT_EQ(refused([] {
              (void)product_by_blocks("cuda", {lines_of_128, squares_of_128}, true);
            }),
            "cuda: cuBLASLt 12.8 knows no scales of blocks, expected 12.9 or newer; take another "
            "{model.fp8.recipe}");
}

// 2 bytes read and 1 written of each element, or 2 where it is wanted turned as well, and scales.
TEST(F8BlocksOnTheGpu, are_rounded_with_one_pass_over_memory) {
  const auto device = open_device("cuda");
  const Tensor x = ops::zeros(*device, {256, 512}, Dtype::bf16);
  device->synchronize();
  for (const F8Blocks blocks : {lines_of_128, squares_of_128, lines_of_32})
    for (const ops::Turned turned : {ops::Turned::yes, ops::Turned::both}) {
      const std::uint64_t before = emulated::meter().moved;
      const Quantized out = ops::quantize_blocks(x, Dtype::f8e4m3, turned, blocks);
      device->synchronize();
      const auto bytes = [](const Tensor& tensor) { return tensor ? tensor.bytes() : 0; };
      EXPECT_EQ(emulated::meter().moved - before,
                std::uint64_t(x.bytes() + bytes(out.codes) + bytes(out.turned) + bytes(out.inverses) +
                              bytes(out.turned_inverses)))
          << int(blocks) << int(turned);
    }
}

}  // namespace
}  // namespace weft
