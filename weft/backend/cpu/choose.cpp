// The chain of kernels: reference, fast, onednn.
#include "weft/backend/cpu/choose.h"

#include "weft/backend/cpu/reference/kernels.h"

namespace weft {

std::unique_ptr<Kernels> choose_kernels(CpuDevice&, CpuKernels asked, std::vector<std::string>& notes) {
  if (asked != CpuKernels::reference) notes.push_back("this build has only the reference kernels: plain loops");
  return std::make_unique<ReferenceKernels>();
}

}  // namespace weft
