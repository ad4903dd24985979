// What the library refuses of eight bits, by its fake: who asks for it on a GPU would be refused there.
#include <cublasLt.h>
#include <gtest/gtest.h>
#include <runtime.h>

#include <array>

#include "tests/backend/gpu_trial.h"
#include "tests/support/refused.h"
#include "weft/backend/cuda/products.h"
#include "weft/backend/open.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/scaled.h"

namespace weft {
namespace {

struct Asked {
  cudaDataType a = CUDA_R_8F_E4M3, b = CUDA_R_8F_E4M3, d = CUDA_R_32F;
  cublasOperation_t turn_a = CUBLAS_OP_T, turn_b = CUBLAS_OP_N;
  std::int64_t m = 16, n = 16, k = 32;
  std::size_t shift = 0;  // of a, in bytes
  bool biased = false;
};

/// A product by columns: d [m, n] = a^T b, or as its turns say.
cublasStatus_t asked(const Asked& is) {
  const testing::Array memory(4096);
  auto* const at = reinterpret_cast<char*>(memory.data());
  cudaMemsetAsync(at, 0, 4096 * sizeof(float), nullptr);
  cublasLtMatmulDesc_t form;
  cublasLtMatmulDescCreate(&form, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  cublasLtMatmulDescSetAttribute(form, CUBLASLT_MATMUL_DESC_TRANSA, &is.turn_a, sizeof is.turn_a);
  cublasLtMatmulDescSetAttribute(form, CUBLASLT_MATMUL_DESC_TRANSB, &is.turn_b, sizeof is.turn_b);
  if (is.biased) {
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    const int type = CUDA_R_32F;
    cublasLtMatmulDescSetAttribute(form, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    cublasLtMatmulDescSetAttribute(form, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &at, sizeof at);
    cublasLtMatmulDescSetAttribute(form, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof type);
  }
  std::array<cublasLtMatrixLayout_t, 3> all{};
  const auto layout = [](cublasLtMatrixLayout_t* out, cudaDataType type, std::int64_t rows,
                         std::int64_t columns) {
    cublasLtMatrixLayoutCreate(out, type, std::uint64_t(rows), std::uint64_t(columns), rows);
  };
  const bool a_turned = is.turn_a == CUBLAS_OP_T, b_turned = is.turn_b == CUBLAS_OP_T;
  layout(&all[0], is.a, a_turned ? is.k : is.m, a_turned ? is.m : is.k);
  layout(&all[1], is.b, b_turned ? is.n : is.k, b_turned ? is.k : is.n);
  layout(&all[2], is.d, is.m, is.n);
  const float one = 1, zero = 0;
  char* const d = at + 8192;
  const cublasStatus_t status = cublasLtMatmul(nullptr, form, &one, at + is.shift, all[0], at + 4096, all[1],
                                               &zero, d, all[2], d, all[2], nullptr, nullptr, 0, nullptr);
  for (const cublasLtMatrixLayout_t each : all) cublasLtMatrixLayoutDestroy(each);
  cublasLtMatmulDescDestroy(form);
  return status;
}

TEST(F8OnTheGpu, is_refused_but_in_the_one_form_that_there_is) {
  EXPECT_EQ(asked({}), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(asked({.a = CUDA_R_8F_E5M2}), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(asked({.d = CUDA_R_16BF}), CUBLAS_STATUS_SUCCESS);
  for (const Asked& is :
       {Asked{.turn_a = CUBLAS_OP_N}, Asked{.turn_b = CUBLAS_OP_T}, Asked{.m = 20}, Asked{.m = 17},
        Asked{.n = 17}, Asked{.k = 24}, Asked{.shift = 8}, Asked{.a = CUDA_R_8F_E5M2, .b = CUDA_R_8F_E5M2},
        Asked{.b = CUDA_R_16BF}, Asked{.d = CUDA_R_8F_E4M3}, Asked{.biased = true}})
    EXPECT_EQ(asked(is), CUBLAS_STATUS_NOT_SUPPORTED);
}

// Its own pass over x: 2 bytes read and 1 written of each element, or 2 where it is wanted turned as well;
// the greatest of tiles is 4 bytes in 4096.
TEST(F8OnTheGpu, rounds_with_one_pass_over_memory) {
  const auto device = open_device("cuda");
  const Tensor x = ops::zeros(*device, {256, 512}, Dtype::bf16), one = ops::zeros(*device, {1}),
               met = ops::zeros(*device, {1});
  ops::fill(one, 1);
  device->synchronize();
  for (const ops::Turned turned : {ops::Turned::yes, ops::Turned::both}) {
    const std::uint64_t before = emulated::meter().moved;
    const Quantized out = ops::quantize(x, Dtype::f8e4m3, turned, one, met);
    device->synchronize();
    const std::int64_t least = x.bytes() + out.turned.bytes() + (out.codes ? out.codes.bytes() : 0);
    EXPECT_LE(double(emulated::meter().moved - before), 1.01 * double(least)) << int(turned);
  }
}

}  // namespace
}  // namespace weft
