// The workspaces of the processor's kernels, asked for and given back.
#include "weft/backend/meta/kernels.h"

#include "weft/backend/cpu/fast/attention.h"
#include "weft/backend/cpu/fast/delta.h"
#include "weft/backend/cpu/fast/doubles.h"
#include "weft/backend/cpu/product/scaled.h"

namespace weft {

void MetaKernels::matmul(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs& how) {
  if (fast::in_doubles(out, a, b)) return;  // it asks the device for nothing
  device_->allocate(products_.matmul_bytes(out, a, b, how, device_->threads()), Use::workspace);
}

void MetaKernels::grouped_matmul(const Tensor& out, const Tensor& a, const Tensor& b, const Groups&,
                                 const MatmulArgs& how) {
  device_->allocate(products_.grouped_bytes(out, a, b, how, device_->threads()), Use::workspace);
}

void MetaKernels::scaled_matmul(const Tensor& out, const Tensor& a, const Tensor&, const ScaledArgs&) {
  const product::InBf16 wide = product::in_bf16(out, a);
  matmul(wide.sums, wide.a, wide.b, product::sums_in_bf16());
}

void MetaKernels::pass_through(std::int64_t bytes) {
  if (bytes > 0) device_->allocate(bytes, Use::workspace);
}

void MetaKernels::attention(const AttentionOut&, const Attended& in, const AttentionArgs& how) {
  pass_through(fast::attention_workspace(in, how, device_->threads()));
}

void MetaKernels::attention_backward(const AttentionGrads& grads, const Tensor&, const AttentionOut&,
                                     const Attended& in, const AttentionArgs& how) {
  pass_through(fast::attention_backward_workspace(grads, in, how, device_->threads()));
}

void MetaKernels::delta_rule(const Tensor& o, const DeltaIn& in) {
  pass_through(fast::delta_workspace(o, in, device_->threads()));
}

void MetaKernels::delta_rule_backward(const DeltaGrads& grads, const Tensor& dout, const DeltaIn& in) {
  pass_through(fast::delta_backward_workspace(grads, dout, in, device_->threads()));
}

}  // namespace weft
