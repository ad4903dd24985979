// How a product is asked for of the fake of cuBLASLt, as descriptors hold it.
#pragma once

#include <cublasLt.h>

#include <cstdint>

#include "tests/support/gpu/scale_modes.h"

namespace emulated {

struct ProductForm {
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
  OperandScale a_scale, b_scale;  // of eight bits
  int bias_type = -1;             // that of d
  void* before = nullptr;         // what gelu reads or read, of d's type and batches
  std::int64_t before_ld = 0;

  /// Where an attribute is kept; null: it is not known.
  void* place_of(cublasLtMatmulDescAttributes_t which) {
    switch (which) {
      case CUBLASLT_MATMUL_DESC_TRANSA:
        return &a;
      case CUBLASLT_MATMUL_DESC_TRANSB:
        return &b;
      case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return &epilogue;
      case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return &bias;
      case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
        return &before;
      case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
        return &before_ld;
      case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
        return &a_scale.at;
      case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
        return &b_scale.at;
      case CUBLASLT_MATMUL_DESC_A_SCALE_MODE:
        return &a_scale.mode;
      case CUBLASLT_MATMUL_DESC_B_SCALE_MODE:
        return &b_scale.mode;
      case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
        return &bias_type;
      default:
        return nullptr;
    }
  }
  bool goes_through_gelu() const {
    return epilogue == CUBLASLT_EPILOGUE_GELU_AUX || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
  }
  bool goes_back() const { return epilogue == CUBLASLT_EPILOGUE_DGELU; }
  bool sums_up() const { return epilogue == CUBLASLT_EPILOGUE_BGRADB; }
  bool biased() const { return (epilogue & CUBLASLT_EPILOGUE_BIAS) != 0; }
  /// As the header has it: what gelu reads lies somewhere, its rows at multiples of eight elements.
  bool before_fits() const {
    if (!goes_through_gelu() && !goes_back()) return true;
    return before && reinterpret_cast<std::uintptr_t>(before) % 16 == 0 && before_ld % 8 == 0;
  }
};

}  // namespace emulated
