// cuBLASLt's functions, found when the first GPU is opened: the program runs where there is no such library.
#pragma once

#include <cublasLt.h>

#include <memory>

namespace weft::cuda {

struct LtLibrary {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtMatmulDescCreate) new_form;
  decltype(&cublasLtMatmulDescDestroy) drop_form;
  decltype(&cublasLtMatmulDescSetAttribute) set_form;
  decltype(&cublasLtMatrixLayoutCreate) new_layout;
  decltype(&cublasLtMatrixLayoutDestroy) drop_layout;
  decltype(&cublasLtMatrixLayoutSetAttribute) set_layout;
  decltype(&cublasLtMatmulPreferenceCreate) new_preference;
  decltype(&cublasLtMatmulPreferenceDestroy) drop_preference;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference;
  decltype(&cublasLtMatmulAlgoGetHeuristic) find;
  decltype(&cublasLtMatmul) multiply;
  decltype(&cublasLtGetVersion) version;
  std::shared_ptr<void> loaded = nullptr;  // stays as long as somebody may call
};

/// Fails with Kind::device where it is not to be had. On the emulated GPU: tests/support/gpu.
LtLibrary lt_library();

}  // namespace weft::cuda
