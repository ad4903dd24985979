// Every computation as nothing but the workspace it would take: what takes none needs no line here.
#pragma once

#include "weft/backend/cpu/product/products.h"
#include "weft/tensor/kernels.h"

namespace weft {

class MetaKernels final : public Kernels {
 public:
  MetaKernels(Device& device, product::Products products)
      : device_(&device), products_(std::move(products)) {}
  const char* name() const override { return "meta"; }

  void matmul(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs&) override;
  void grouped_matmul(const Tensor& out, const Tensor& a, const Tensor& b, const Groups&,
                      const MatmulArgs&) override;
  void scaled_matmul(const Tensor& out, const Tensor& a, const Tensor& b, const ScaledArgs&) override;
  void attention(const AttentionOut&, const Attended& in, const AttentionArgs& how) override;
  void attention_backward(const AttentionGrads& grads, const Tensor&, const AttentionOut&, const Attended& in,
                          const AttentionArgs& how) override;
  void delta_rule(const Tensor& o, const DeltaIn& in) override;
  void delta_rule_backward(const DeltaGrads& grads, const Tensor& dout, const DeltaIn& in) override;

 private:
  void hand_on(const KernelCall&) override {}
  /// Workspace that is asked for and given back.
  void pass_through(std::int64_t bytes);

  Device* device_;
  product::Products products_;
};

}  // namespace weft
