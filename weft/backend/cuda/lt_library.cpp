#include "weft/backend/cuda/lt_library.h"

#include <dlfcn.h>

#include "weft/base/error.h"

namespace weft::cuda {
namespace {

template <class Function>
void look_up(const std::shared_ptr<void>& library, Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(library.get(), name));
  if (!function) fail(Kind::device, "cuda: libcublasLt has no ", name, ", expected one of CUDA 12 or 13");
}

std::shared_ptr<void> opened() {
  for (const char* name : {"libcublasLt.so.13", "libcublasLt.so.12"})
    if (void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return {handle, dlclose};
  fail(Kind::device, "cuda: neither libcublasLt.so.13 nor .12 is to be found (", dlerror(),
       "); install CUDA's libraries or name their folder in LD_LIBRARY_PATH");
}

}  // namespace

LtLibrary lt_library() {
  LtLibrary out{};
  out.loaded = opened();
  look_up(out.loaded, out.create, "cublasLtCreate");
  look_up(out.loaded, out.destroy, "cublasLtDestroy");
  look_up(out.loaded, out.new_form, "cublasLtMatmulDescCreate");
  look_up(out.loaded, out.drop_form, "cublasLtMatmulDescDestroy");
  look_up(out.loaded, out.set_form, "cublasLtMatmulDescSetAttribute");
  look_up(out.loaded, out.new_layout, "cublasLtMatrixLayoutCreate");
  look_up(out.loaded, out.drop_layout, "cublasLtMatrixLayoutDestroy");
  look_up(out.loaded, out.set_layout, "cublasLtMatrixLayoutSetAttribute");
  look_up(out.loaded, out.new_preference, "cublasLtMatmulPreferenceCreate");
  look_up(out.loaded, out.drop_preference, "cublasLtMatmulPreferenceDestroy");
  look_up(out.loaded, out.set_preference, "cublasLtMatmulPreferenceSetAttribute");
  look_up(out.loaded, out.find, "cublasLtMatmulAlgoGetHeuristic");
  look_up(out.loaded, out.multiply, "cublasLtMatmul");
  look_up(out.loaded, out.version, "cublasLtGetVersion");
  return out;
}

}  // namespace weft::cuda
