// On the emulated GPU the library is part of the program.
#include "weft/backend/cuda/lt_library.h"

namespace weft::cuda {

LtLibrary lt_library() {
  return {cublasLtCreate,
          cublasLtDestroy,
          cublasLtMatmulDescCreate,
          cublasLtMatmulDescDestroy,
          cublasLtMatmulDescSetAttribute,
          cublasLtMatrixLayoutCreate,
          cublasLtMatrixLayoutDestroy,
          cublasLtMatrixLayoutSetAttribute,
          cublasLtMatmulPreferenceCreate,
          cublasLtMatmulPreferenceDestroy,
          cublasLtMatmulPreferenceSetAttribute,
          cublasLtMatmulAlgoGetHeuristic,
          cublasLtMatmul,
          cublasLtGetVersion};
}

}  // namespace weft::cuda
