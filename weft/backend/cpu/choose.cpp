// The chain of kernels: reference, then our own vector loops.
#include "weft/backend/cpu/choose.h"

#include "weft/backend/cpu/product/kernels.h"
#include "weft/backend/cpu/reference/kernels.h"

namespace weft {
namespace {

class ProductKernels final : public ReferenceKernels {
 public:
  explicit ProductKernels(const product::Loops& loops) : loops_(&loops) {}
  const char* name() const override { return "cpu"; }
  void matmul(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs& how) override {
    product::matmul(out, a, b, how, *loops_);
  }
  void grouped_matmul(const Tensor& out, const Tensor& a, const Tensor& b, Groups groups,
                      const MatmulArgs& how) override {
    product::grouped_matmul(out, a, b, groups, how, *loops_);
  }
  std::int64_t packed_bytes(const Tensor& w, Read read) override {
    return product::packed_bytes(w.dim(read == Read::as_is ? 0 : 1), w.dim(read == Read::as_is ? 1 : 0));
  }
  void pack(const Tensor& packed, const Tensor& w, Read read) override {
    product::pack(packed, w, read, *loops_);
  }

 private:
  const product::Loops* loops_;
};

}  // namespace

std::unique_ptr<Kernels> choose_kernels(CpuDevice&, CpuKernels asked, std::vector<std::string>&) {
  if (asked == CpuKernels::reference) return std::make_unique<ReferenceKernels>();
  return std::make_unique<ProductKernels>(product::loops(fast::best_here()));
}

}  // namespace weft
