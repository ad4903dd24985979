// Every computation of a GPU's kernels as nothing but the memory that it would work in.
#pragma once

#include "weft/backend/gpus.h"
#include "weft/tensor/kernels.h"

namespace weft {

/// For a GPU that is `like` one, in exact mode or not: what cuda/kernels.h takes, it takes.
class MetaGpuKernels final : public Kernels {
 public:
  MetaGpuKernels(Device& device, const GpuHere& like, bool exact)
      : device_(&device), like_(like), exact_(exact) {}
  const char* name() const override { return "meta"; }

  void matmul(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs&) override;
  bool activates_products(Dtype dtype, Activation f) const override;
  bool multiplies_unseen_groups(Dtype dtype) const override;
  void weight_gradient(const LinearGrads& grads, const Tensor& dy, const Tensor& x) override;
  void grouped_matmul(const Tensor& out, const Tensor& a, const Tensor& b, const Groups&,
                      const MatmulArgs&) override;
  void quantize(const Quantized& out, const Tensor& x, const Tensor& scale, const Tensor& met) override;
  void scaled_matmul(const Tensor& out, const Tensor& a, const Tensor& b, const ScaledArgs&) override;
  void sum_rows(const Tensor& dbias, const Tensor& dy) override;
  void norm_backward(const NormGrads&, const Tensor& dy, const Tensor& residual, const NormSaved&,
                     const NormArgs&) override;
  void attention_backward(const AttentionGrads&, const Tensor& dout, const AttentionOut&, const Attended& in,
                          const AttentionArgs&) override;
  void convolve_backward(const ConvolveGrads&, const Tensor& dy, const Tensor& x,
                         const Filters& filters) override;
  void delta_rule_backward(const DeltaGrads&, const Tensor& dout, const DeltaIn&) override;
  bool loses_in_one_walk(const Tensor& logits) const override;
  void loss_and_gradient(const Tensor& loss, const Tensor& logits, const LossTargets&,
                         VocabularyPart) override;
  void sum(const Tensor& out, const Tensor& x) override;
  void max_abs(const Tensor& out, const Tensor& x) override;
  void find_nonfinite(const Tensor& out, const Tensor& x) override;
  void count_zeros(const Tensor& out, const Tensor& x) override;
  void sum_exact(const Tensor& digits, const Tensor& x) override;
  void sum_squares(const Tensor& digits, const Tensor& x) override;
  void route(const Routed&, const Tensor& logits, const Tensor& bias, const RouteArgs&) override;

 private:
  void hand_on(const KernelCall&) override {}
  Tensor workspace(const Shape& shape, Dtype dtype = Dtype::f32) const;
  void ready_products();
  void slabs_of(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs&);

  Device* device_;
  GpuHere like_;
  bool exact_;
  Tensor product_space_, scale_space_;  // from the first product on, as a GPU's kernels keep them
};

}  // namespace weft
