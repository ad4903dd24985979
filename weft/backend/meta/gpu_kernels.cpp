// Each function follows the one of its name in cuda/*.cu as far as that asks for memory; what decides how
// much is in cuda/space.h, which both ask.
#include "weft/backend/meta/gpu_kernels.h"

#include "weft/backend/cuda/group_calls.h"
#include "weft/backend/cuda/space.h"
#include "weft/tensor/exact_sum.h"

namespace weft {

using namespace cuda;

Tensor MetaGpuKernels::workspace(const Shape& shape, Dtype dtype) const {
  return empty(*device_, shape, dtype, Use::workspace);
}

void MetaGpuKernels::ready_products() {
  if (!product_space_) product_space_ = workspace({like_.product_space + product_space_alignment}, Dtype::u8);
}

void MetaGpuKernels::matmul(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs& how) {
  if (out.elements() == 0 || in_doubles(out, a, b)) return;
  if (how.slabs > 1) return slabs_of(out, a, b, how);
  if (exact_) return;
  const std::int64_t k = depth_of(a, how);
  const bool whole = k > 0 && adds_in_product(how.bias, out);
  const Tensor apart = whole ? Tensor() : workspace(out.shape());
  if (k > 0) ready_products();
}

void MetaGpuKernels::slabs_of(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs& how) {
  if (out.rank() == 3) {
    for (std::int64_t i = 0; i < out.dim(0); ++i) slabs_of(out.at(0, i), a.at(0, i), b.at(0, i), how);
    return;
  }
  const Tensor parts = workspace({how.slabs, out.dim(0), out.dim(1)});
  if (!exact_) ready_products();
}

bool MetaGpuKernels::activates_products(Dtype dtype, Activation f) const {
  return !exact_ && gelu_in_products(dtype, f, like_.major);
}

bool MetaGpuKernels::multiplies_unseen_groups(Dtype dtype) const { return takes_unseen_groups(dtype); }

// The library gives the sums where rows are whole vectors; elsewhere it is asked in vain.
void MetaGpuKernels::weight_gradient(const LinearGrads& grads, const Tensor& dy, const Tensor& x) {
  const Tensor& dw = grads.dw.sum;
  if (!exact_ && is_half(dy.dtype())) {
    ready_products();
    const Tensor fresh = workspace({dw.dim(0)});
    if (whole_vectors(dy) && whole_vectors(x) && whole_vectors(dw)) return;
  }
  Kernels::weight_gradient(grads, dy, x);
}

void MetaGpuKernels::grouped_matmul(const Tensor& out, const Tensor& a, const Tensor& b, const Groups& groups,
                                    const MatmulArgs& how) {
  if (out.elements() == 0) return;
  if (!sums_columns(a, how) && groups_by_calls(a.dtype(), groups))
    a_call_a_group({out, a, b, groups, how}, [this](const auto&... one) { matmul(one...); });
  else if (!groups.unseen)
    (void)workspace({groups.count() + 1}, Dtype::i64);
}

void MetaGpuKernels::quantize(const Quantized&, const Tensor& x, const Tensor&, const Tensor& met) {
  if (x.elements() > 0 && met) (void)workspace({rounding_blocks(x)});
}

void MetaGpuKernels::scaled_matmul(const Tensor& out, const Tensor& a, const Tensor& b,
                                   const ScaledArgs& how) {
  ready_products();
  if (!how.in_blocks()) {
    const bool lie_well = scale_lies_well(how.a_inverse) && scale_lies_well(how.b_inverse);
    if (!lie_well && !scale_space_) scale_space_ = workspace({scale_space});
  }
  const bool widened = !knows_blocks(how.a_blocks, like_.major);
  const Tensor wide[] = {widened ? workspace(a.shape(), Dtype::bf16) : Tensor(),
                         widened ? workspace(b.shape(), Dtype::bf16) : Tensor()};
  if (!scaled_in_place(out, how, widened)) (void)workspace({a.dim(0), b.dim(0)});
}

void MetaGpuKernels::sum_rows(const Tensor&, const Tensor& dy) {
  if (dy.elements() > 0) (void)workspace(lines_of_columns(dy, exact_));
}

void MetaGpuKernels::norm_backward(const NormGrads& grads, const Tensor&, const Tensor&,
                                   const NormSaved& saved, const NormArgs&) {
  if (saved.x.elements() == 0) return;
  const bool in_pieces = grads.dgain && grads.dgain.rank() == 2;
  const Tensor x = in_pieces ? saved.x.slice(0, 0, saved.x.dim(0) / grads.dgain.dim(0)) : saved.x;
  const Shape lines = lines_of_norm(x);
  const Tensor dgain = grads.dgain ? workspace(lines) : Tensor(),
               dbias = grads.dbias ? workspace(lines) : Tensor();
}

void MetaGpuKernels::attention_backward(const AttentionGrads& grads, const Tensor& dout,
                                        const AttentionOut& out, const Attended& in, const AttentionArgs&) {
  const Tensor numbers = workspace({2, out.lse.elements()});
  if (grads.dbias && fits_tiles(in, dout)) (void)workspace(lines_of_distances(in));
}

void MetaGpuKernels::convolve_backward(const ConvolveGrads&, const Tensor&, const Tensor& x,
                                       const Filters& filters) {
  if (x.elements() == 0) return;
  const Tensor lines = workspace(lines_of_filters(x, filters.weight)),
               of_biases = filters.bias ? workspace(lines_of_filters(x, filters.bias)) : Tensor();
}

void MetaGpuKernels::delta_rule_backward(const DeltaGrads&, const Tensor& dout, const DeltaIn& in) {
  if (dout.elements() == 0) return;
  const Tensor begins = workspace(states_of_segments(in, dout)),
               states = workspace(states_in_segment(in, dout)), lines = workspace(lines_of_delta(in, dout)),
               numbers = workspace(numbers_of_delta(in));
}

bool MetaGpuKernels::loses_in_one_walk(const Tensor& logits) const {
  const std::int64_t bytes = bytes_to_hold_row(logits);
  return bytes > 0 && bytes <= like_.most_shared;
}

// Neither way takes any.
void MetaGpuKernels::loss_and_gradient(const Tensor& loss, const Tensor& logits, const LossTargets& targets,
                                       VocabularyPart part) {
  if (!loses_in_one_walk(logits)) Kernels::loss_and_gradient(loss, logits, targets, part);
}

void MetaGpuKernels::sum(const Tensor&, const Tensor&) {
  (void)workspace({most_reducing_blocks}, Dtype::f64);
}
void MetaGpuKernels::max_abs(const Tensor&, const Tensor&) {
  (void)workspace({most_reducing_blocks}, Dtype::f64);
}
void MetaGpuKernels::find_nonfinite(const Tensor&, const Tensor&) {
  (void)workspace({most_reducing_blocks}, Dtype::i64);
}
void MetaGpuKernels::count_zeros(const Tensor&, const Tensor&) {
  (void)workspace({most_reducing_blocks}, Dtype::i64);
}
void MetaGpuKernels::sum_exact(const Tensor&, const Tensor&) {
  (void)workspace({most_exact_blocks, exact_digits + 1}, Dtype::f64);
}
void MetaGpuKernels::sum_squares(const Tensor& digits, const Tensor& x) { sum_exact(digits, x); }

void MetaGpuKernels::route(const Routed&, const Tensor& logits, const Tensor&, const RouteArgs& how) {
  if (logits.dim(0) == 0) return;
  const Tensor compared = workspace(logits.shape(), logits.dtype());
  if (how.groups > 0) (void)workspace({logits.dim(0), how.groups}, logits.dtype());
}

}  // namespace weft
