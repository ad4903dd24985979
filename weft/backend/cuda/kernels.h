// The GPU's kernels. Each .cu beside this has those of one kind, with the functions that launch them.
#pragma once

#include <cuda_runtime.h>

#include <memory>

#include "weft/backend/cuda/faults.h"
#include "weft/backend/cuda/queue.h"
#include "weft/backend/cuda/through_gelu.h"
#include "weft/tensor/kernels.h"

namespace weft {

class CudaDevice;
namespace cuda {
class Products;
}

class CudaKernels final : public Kernels {
 public:
  explicit CudaKernels(CudaDevice& device);
  ~CudaKernels() override;
  const char* name() const override { return "cuda"; }

  void matmul(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs&) override;
  bool activates_products(Dtype dtype, Activation f) const override;
  bool multiplies_unseen_groups(Dtype dtype) const override;
  void matmul_activated(const Tensor& y, const Tensor& before, const Tensor& a, const Tensor& b,
                        const ActivatedArgs&) override;
  void matmul_derived(const Tensor& out, const Tensor& before, const Tensor& a, const Tensor& b,
                      const ActivatedArgs&) override;
  void weight_gradient(const LinearGrads& grads, const Tensor& dy, const Tensor& x) override;
  void grouped_matmul(const Tensor& out, const Tensor& a, const Tensor& b, const Groups&,
                      const MatmulArgs&) override;

  void quantize(const Quantized& out, const Tensor& x, const Tensor& scale, const Tensor& met) override;
  void quantize_blocks(const Quantized& out, const Tensor& x, F8Blocks blocks) override;
  void scaled_matmul(const Tensor& out, const Tensor& a, const Tensor& b, const ScaledArgs&) override;
  void renew_scales(const Tensor& rows, const ScaleArgs&) override;

  void fill(const Tensor& out, double value) override;
  void copy(const Tensor& out, const Tensor& in) override;
  void add(const Tensor& out, const Tensor& a, const Tensor& b) override;
  void add_scaled(const Tensor& out, const Tensor& x, float alpha) override;
  void scale(const Tensor& x, float alpha) override;
  void multiply(const Tensor& out, const Tensor& a, const Tensor& b) override;
  void add_bias(const Tensor& x, const Tensor& bias) override;
  void sum_rows(const Tensor& dbias, const Tensor& dy) override;
  void scale_rows(const Tensor& y, const Tensor& x, const Tensor& factor) override;
  void dot_rows(const Tensor& out, const Tensor& a, const Tensor& b) override;

  void dropout(const Tensor& y, const Tensor& x, const DropoutArgs&) override;
  void bias_dropout_add(const Tensor& out, const Tensor& x, const Tensor& bias, const Tensor& residual,
                        const DropoutArgs&) override;
  void random_normal(const Tensor& out, float mean, float deviation, const RandomBlock&) override;
  void random_uniform(const Tensor& out, float low, float high, const RandomBlock&) override;

  void activation(const Tensor& y, const Tensor& x, const Tensor& bias, Activation) override;
  void activation_backward(const Tensor& dx, const Tensor& dy, const Tensor& x, const Tensor& bias,
                           Activation) override;
  void gated(const Tensor& y, const Tensor& x, const Tensor& bias, const Gate&) override;
  void gated_backward(const Tensor& dx, const Tensor& dy, const Tensor& x, const Tensor& bias,
                      const Gate&) override;

  void norm(const Tensor& y, const NormStats&, const Tensor& x, const NormWeights&, const NormArgs&) override;
  void norm_backward(const NormGrads&, const Tensor& dy, const Tensor& residual, const NormSaved&,
                     const NormArgs&) override;
  void sum_norm(const SumNormOut&, const SumNormIn&, const NormWeights&, const NormArgs&) override;

  void softmax(const Tensor& y, const Tensor& x) override;
  void attention(const AttentionOut&, const Attended&, const AttentionArgs&) override;
  void attention_backward(const AttentionGrads&, const Tensor& dout, const AttentionOut& out, const Attended&,
                          const AttentionArgs&) override;
  void raise_greatest(const Tensor& greatest, const Tensor& rows) override;
  void merge_attention(const AttentionOut& into, const AttentionOut& part) override;
  void sink_terms(const Tensor& terms, const Tensor& lse, const Tensor& sinks) override;
  void rope(const Tensor& x, const RopeArgs&) override;
  void convolve(const Tensor& y, const Tensor& x, const Filters& filters) override;
  void convolve_backward(const ConvolveGrads&, const Tensor& dy, const Tensor& x,
                         const Filters& filters) override;
  void delta_rule(const Tensor& o, const DeltaIn&) override;
  void delta_rule_backward(const DeltaGrads&, const Tensor& dout, const DeltaIn&) override;

  void loss_max(const LossParts&, const Tensor& logits, VocabularyPart) override;
  void loss_sums(const LossParts&, const Tensor& logits, const Tensor& targets, VocabularyPart) override;
  void loss_finish(const Tensor& loss, const LossParts&) override;
  void loss_backward(const Tensor& logits, const LossParts&, const LossTargets&, VocabularyPart) override;

  bool loses_in_one_walk(const Tensor& logits) const override;
  void loss_and_gradient(const Tensor& loss, const Tensor& logits, const LossTargets&,
                         VocabularyPart) override;

  void gather(const Tensor& out, const Tensor& table, const Tensor& ids, std::int64_t first) override;
  void scatter_add(const Tensor& dtable, const Tensor& dout, const Tensor& ids, std::int64_t first) override;

  void sum(const Tensor& out, const Tensor& x) override;
  void sum_exact(const Tensor& digits, const Tensor& x) override;
  void sum_squares(const Tensor& digits, const Tensor& x) override;
  void norm_ratios(const Tensor& out, const Tensor& digits, const NormRatioArgs&) override;
  void max_abs(const Tensor& out, const Tensor& x) override;
  void find_nonfinite(const Tensor& out, const Tensor& x) override;
  void count_zeros(const Tensor& out, const Tensor& x) override;

  void top_k(const Tensor& values, const Tensor& indices, const Tensor& x) override;
  void gather_rows(const Tensor& out, const Tensor& x, const Tensor& index) override;
  void scatter_add_rows(const Tensor& out, const Tensor& x, const Tensor& index,
                        const Tensor& weight) override;

  void route(const Routed&, const Tensor& logits, const Tensor& bias, const RouteArgs&) override;
  void route_backward(const Tensor& dlogits, const Tensor& dweights, const Tensor& logits, const Routed&,
                      const RouteArgs&) override;
  void count_experts(const Tensor& counts, const Tensor& experts) override;
  void balance(const Tensor& terms, const Tensor& dlogits, const Tensor& logits, const Tensor& factors,
               RouterScore, float scale) override;
  void square_log_sum(const Tensor& terms, const Tensor& dlogits, const Tensor& logits, float scale) override;
  void limit_experts(const Tensor& kept, const Routed&, std::int64_t most, DropPolicy) override;
  void follow_counts(const Tensor& bias, const Tensor& counts, float rate) override;
  void plan_rows(const RowPlan&, const Tensor& experts, std::int64_t room) override;

  void adam(const AdamState&, const Tensor& grad, const AdamArgs&) override;
  void sgd(const SgdState&, const Tensor& grad, const SgdArgs&) override;
  void lion(const SgdState&, const Tensor& grad, const LionArgs&) override;
  void adam_direction(const AdamState&, const Tensor& grad, const AdamArgs&) override;
  void descend(const Tensor& master, const Tensor& copy, const Tensor& x, const DescentArgs&) override;
  void root(const Tensor& out, const Tensor& x, float epsilon) override;
  void take_signs(const Tensor& bits, const Tensor& x, const Tensor& size) override;
  void add_signs(const Tensor& out, const Tensor& bits, const Tensor& size, float share) override;
  void pack_blocks(const Tensor& packed, const Tensor& x, const BlockCode& how) override;
  void unpack_blocks(const Tensor& out, const Tensor& packed, const BlockCode& how) override;

 private:
  /// By the library, which takes what is not empty. False: it knows no such way with gelu, or none is exact.
  bool product(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs&,
               const cuda::ThroughGelu& gelu = {});
  void ready_products();
  void* product_space() const;
  /// What operands of eight bits are multiplied by to be what they stand for: where the library takes it
  /// from.
  struct Inverses {
    const void *a, *b;
  };
  Inverses inverses(const ScaledArgs& how);
  /// Codes by blocks, and what they stand for, in bf16.
  Tensor widened(const Tensor& codes, const Tensor& inverses, F8Blocks blocks) const;
  void slabs_of(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs&);
  void in_fixed_order(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs&);
  cuda::Queue& queue() const;
  bool warpgroups() const;
  bool exact() const;
  cuda::FaultWord* faults() const;
  /// Memory until the end of the caller, in the stream's order.
  Tensor workspace(const Shape& shape, Dtype dtype = Dtype::f32) const;

  CudaDevice* device_;
  std::unique_ptr<cuda::Products> products_;  // when there is the first product
  Tensor product_space_, scale_space_;
};

}  // namespace weft
