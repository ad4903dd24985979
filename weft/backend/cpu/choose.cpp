// The chain of kernels: reference, fast, onednn.
#include "weft/backend/cpu/choose.h"

namespace weft {
namespace {

class NoKernels final : public Kernels {
 public:
  const char* name() const override { return "cpu"; }
};

}  // namespace

std::unique_ptr<Kernels> choose_kernels(CpuDevice&, CpuKernels, std::vector<std::string>&) {
  return std::make_unique<NoKernels>();
}

}  // namespace weft
