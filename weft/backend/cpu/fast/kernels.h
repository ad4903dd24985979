// The kernels that move memory, in our own vector loops: everything but products and attention.
#pragma once

#include <cstddef>
#include <type_traits>
#include <vector>

#include "weft/backend/cpu/fast/instruction_set.h"
#include "weft/backend/cpu/fast/loops.h"
#include "weft/backend/cpu/reference/kernels.h"

namespace weft {

namespace fast {

/// Room for numbers on their way, kept from call to call.
class Scratch {
 public:
  template <class T>
  T* take(std::int64_t count) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= alignof(std::max_align_t));
    const std::size_t units = (std::size_t(count) * sizeof(T) + sizeof(Unit) - 1) / sizeof(Unit);
    if (room_.size() < units) room_.resize(units);
    return reinterpret_cast<T*>(room_.data());
  }

 private:
  struct Unit {
    alignas(std::max_align_t) std::byte bytes[alignof(std::max_align_t)];
  };
  std::vector<Unit> room_;
};

}  // namespace fast

/// One rank's kernels: called by one thread at a time, computing on `threads`. Every instruction set and
/// every number of threads gives the same bits, but for the delta rule and state spaces, whose products the
/// generic loops of an x86 round twice. What is not in lines (last dimension of step 1) falls back on the
/// reference.
class FastKernels : public ReferenceKernels {
 public:
  explicit FastKernels(int threads, fast::InstructionSet set = fast::best_here())
      : threads_(threads), set_(set), loops_(fast::loops(set)) {}
  const char* name() const override { return "fast"; }
  int threads() const { return threads_; }
  fast::InstructionSet instruction_set() const { return set_; }

  void quantize(const Quantized& out, const Tensor& x, const Tensor& scale, const Tensor& met) override;
  void quantize_blocks(const Quantized& out, const Tensor& x, F8Blocks blocks) override;

  void fill(const Tensor& out, double value) override;
  void copy(const Tensor& out, const Tensor& in) override;
  void add(const Tensor& out, const Tensor& a, const Tensor& b) override;
  void add_scaled(const Tensor& out, const Tensor& x, float alpha) override;
  void scale(const Tensor& x, float alpha) override;
  void multiply(const Tensor& out, const Tensor& a, const Tensor& b) override;
  void add_bias(const Tensor& x, const Tensor& bias) override;
  void sum_rows(const Tensor& dbias, const Tensor& dy) override;
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
  void scale_rows(const Tensor& y, const Tensor& x, const Tensor& factor) override;
  void dot_rows(const Tensor& out, const Tensor& a, const Tensor& b) override;

  void softmax(const Tensor& y, const Tensor& x) override;
  void raise_greatest(const Tensor& greatest, const Tensor& rows) override;
  void sink_terms(const Tensor& terms, const Tensor& lse, const Tensor& sinks) override;
  void rope(const Tensor& x, const RopeArgs&) override;

  void convolve(const Tensor& y, const Tensor& x, const Filters& filters) override;
  void convolve_backward(const ConvolveGrads& grads, const Tensor& dy, const Tensor& x,
                         const Filters& filters) override;
  void delta_rule(const Tensor& o, const DeltaIn& in) override;
  void delta_rule_backward(const DeltaGrads& grads, const Tensor& dout, const DeltaIn& in) override;

  void gather(const Tensor& out, const Tensor& table, const Tensor& ids, std::int64_t first) override;
  void scatter_add(const Tensor& dtable, const Tensor& dout, const Tensor& ids, std::int64_t first) override;

  void loss_max(const LossParts&, const Tensor& logits, VocabularyPart) override;
  void loss_sums(const LossParts&, const Tensor& logits, const Tensor& targets, VocabularyPart) override;
  void loss_finish(const Tensor& loss, const LossParts&) override;
  void loss_backward(const Tensor& logits, const LossParts&, const LossTargets&, VocabularyPart) override;

  void sum(const Tensor& out, const Tensor& x) override;
  void sum_exact(const Tensor& digits, const Tensor& x) override;
  void sum_squares(const Tensor& digits, const Tensor& x) override;
  void max_abs(const Tensor& out, const Tensor& x) override;
  void find_nonfinite(const Tensor& out, const Tensor& x) override;
  void count_zeros(const Tensor& out, const Tensor& x) override;

  void top_k(const Tensor& values, const Tensor& indices, const Tensor& x) override;
  void gather_rows(const Tensor& out, const Tensor& x, const Tensor& index) override;
  void scatter_add_rows(const Tensor& out, const Tensor& x, const Tensor& index,
                        const Tensor& weight) override;

  void route(const Routed& out, const Tensor& logits, const Tensor& bias, const RouteArgs&) override;
  void route_backward(const Tensor& dlogits, const Tensor& dweights, const Tensor& logits,
                      const Routed& routed, const RouteArgs&) override;
  void count_experts(const Tensor& counts, const Tensor& experts) override;
  void balance(const Tensor& terms, const Tensor& dlogits, const Tensor& logits, const Tensor& factors,
               RouterScore score, float scale) override;
  void square_log_sum(const Tensor& terms, const Tensor& dlogits, const Tensor& logits, float scale) override;
  void limit_experts(const Tensor& kept, const Routed& routed, std::int64_t most, DropPolicy policy) override;
  void follow_counts(const Tensor& bias, const Tensor& counts, float rate) override;
  void plan_rows(const RowPlan& out, const Tensor& experts, std::int64_t room) override;

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

 protected:
  const fast::Loops& loops() const { return loops_; }

 private:
  void narrow_adam(const AdamState&, const Tensor& grad, const AdamArgs&);
  /// The numbers of a vector as f32: where they lie, or converted into room; null for an empty one.
  const float* widened(const Tensor& vector, float* room) const;
  /// The same in the order of a walk: `pieces` equal ones one after the other. room: twice as many.
  const float* arranged(const Tensor& vector, fast::Walk walk, float* room, int pieces = 1) const;
  const float* arranged_gain(const Tensor& gain, const NormArgs& how, fast::Walk walk, float* room) const;
  /// total += sums + those `step` after them + …, in order; sums are lost.
  void add_pieces(const Tensor& total, float* sums, std::int64_t step, std::int64_t count) const;
  void add_exactly(const Tensor& digits, const Tensor& x, fast::Term term);

  int threads_;
  fast::InstructionSet set_;
  const fast::Loops& loops_;
  fast::Scratch scratch_;  // rows of f32
  fast::Scratch few_;      // a few numbers a thread, a piece or a row of the batch
};

}  // namespace weft
