// Every computation as nothing but the workspace it would take.
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
  void grouped_matmul(const Tensor& out, const Tensor& a, const Tensor& b, Groups,
                      const MatmulArgs&) override;
  std::int64_t packed_bytes(const Tensor& w, Read) override;
  void pack(const Tensor& packed, const Tensor& w, Read) override;

  void fill(const Tensor&, double) override {}
  void copy(const Tensor&, const Tensor&) override {}
  void add(const Tensor&, const Tensor&, const Tensor&) override {}
  void add_scaled(const Tensor&, const Tensor&, float) override {}
  void scale(const Tensor&, float) override {}
  void multiply(const Tensor&, const Tensor&, const Tensor&) override {}
  void add_bias(const Tensor&, const Tensor&) override {}
  void sum_rows(const Tensor&, const Tensor&) override {}
  void dropout(const Tensor&, const Tensor&, const DropoutArgs&) override {}
  void bias_dropout_add(const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                        const DropoutArgs&) override {}
  void random_normal(const Tensor&, float, float, const RandomBlock&) override {}
  void random_uniform(const Tensor&, float, float, const RandomBlock&) override {}
  void activation(const Tensor&, const Tensor&, const Tensor&, Activation) override {}
  void activation_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, Activation) override {}
  void gated(const Tensor&, const Tensor&, const Tensor&, Activation) override {}
  void gated_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, Activation) override {}
  void norm(const Tensor&, const NormStats&, const Tensor&, const NormWeights&, const NormArgs&) override {}
  void norm_backward(const NormGrads&, const Tensor&, const Tensor&, const NormSaved&,
                     const NormArgs&) override {}
  void sum_norm(const SumNormOut&, const SumNormIn&, const NormWeights&, const NormArgs&) override {}
  void scale_rows(const Tensor&, const Tensor&, const Tensor&) override {}
  void dot_rows(const Tensor&, const Tensor&, const Tensor&) override {}
  void softmax(const Tensor&, const Tensor&, Mask, const Tensor&) override {}
  void softmax_backward(const Tensor&, const Tensor&, const Tensor&) override {}
  void log_sum_exp(const Tensor&, const Tensor&) override {}
  void attention(const AttentionOut&, const Attended& in, const AttentionArgs& how) override;
  void attention_backward(const AttentionGrads& grads, const Tensor&, const AttentionOut&, const Attended& in,
                          const AttentionArgs& how) override;
  void merge_attention(const AttentionOut&, const AttentionOut&) override {}
  void rope(const Tensor&, const RopeArgs&) override {}
  void gather(const Tensor&, const Tensor&, const Tensor&, std::int64_t) override {}
  void scatter_add(const Tensor&, const Tensor&, const Tensor&, std::int64_t) override {}
  void loss_max(const LossParts&, const Tensor&, VocabularyPart) override {}
  void loss_sums(const LossParts&, const Tensor&, const Tensor&, VocabularyPart) override {}
  void loss_finish(const Tensor&, const LossParts&, const LossArgs&, std::int64_t) override {}
  void loss_backward(const Tensor&, const LossParts&, const LossTargets&, VocabularyPart,
                     const LossArgs&) override {}
  void sum(const Tensor&, const Tensor&) override {}
  void sum_exact(const Tensor&, const Tensor&) override {}
  void sum_squares(const Tensor&, const Tensor&) override {}
  void max_abs(const Tensor&, const Tensor&) override {}
  void find_nonfinite(const Tensor&, const Tensor&) override {}
  void count_zeros(const Tensor&, const Tensor&) override {}
  void top_k(const Tensor&, const Tensor&, const Tensor&) override {}
  void sort_by_key(const Tensor&, const Tensor&, const Tensor&) override {}
  void gather_rows(const Tensor&, const Tensor&, const Tensor&) override {}
  void scatter_add_rows(const Tensor&, const Tensor&, const Tensor&, const Tensor&) override {}
  void adam(const AdamState&, const Tensor&, const AdamArgs&) override {}
  void sgd(const SgdState&, const Tensor&, const SgdArgs&) override {}
  void lion(const SgdState&, const Tensor&, const LionArgs&) override {}
  void adam_direction(const AdamState&, const Tensor&, const AdamArgs&) override {}
  void descend(const Tensor&, const Tensor&, const Tensor&, const DescentArgs&) override {}
  void root(const Tensor&, const Tensor&, float) override {}
  void take_signs(const Tensor&, const Tensor&, float) override {}
  void add_signs(const Tensor&, const Tensor&, float) override {}

 private:
  /// Workspace that is asked for and given back.
  void pass_through(std::int64_t bytes);

  Device* device_;
  product::Products products_;
};

}  // namespace weft
