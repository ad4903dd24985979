// What a backend has not got, it says by name.
#include "weft/tensor/kernels.h"

namespace weft {

void Kernels::missing(const char* op) const {
  fail(Kind::device, op, " is not implemented by the ", name(), " backend");
}

void Kernels::matmul(const Tensor&, const Tensor&, const Tensor&, const MatmulArgs&) { missing("matmul"); }
void Kernels::grouped_matmul(const Tensor&, const Tensor&, const Tensor&, Groups, const MatmulArgs&) {
  missing("grouped_matmul");
}
std::int64_t Kernels::packed_bytes(const Tensor&, Read) { missing("packed_bytes"); }
void Kernels::pack(const Tensor&, const Tensor&, Read) { missing("pack"); }
void Kernels::fill(const Tensor&, double) { missing("fill"); }
void Kernels::copy(const Tensor&, const Tensor&) { missing("copy"); }
void Kernels::add(const Tensor&, const Tensor&, const Tensor&) { missing("add"); }
void Kernels::add_scaled(const Tensor&, const Tensor&, float) { missing("add_scaled"); }
void Kernels::scale(const Tensor&, float) { missing("scale"); }
void Kernels::multiply(const Tensor&, const Tensor&, const Tensor&) { missing("multiply"); }
void Kernels::add_bias(const Tensor&, const Tensor&) { missing("add_bias"); }
void Kernels::sum_rows(const Tensor&, const Tensor&) { missing("sum_rows"); }
void Kernels::dropout(const Tensor&, const Tensor&, const DropoutArgs&) { missing("dropout"); }
void Kernels::bias_dropout_add(const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                               const DropoutArgs&) {
  missing("bias_dropout_add");
}
void Kernels::random_normal(const Tensor&, float, float, const RandomBlock&) { missing("random_normal"); }
void Kernels::random_uniform(const Tensor&, float, float, const RandomBlock&) { missing("random_uniform"); }
void Kernels::activation(const Tensor&, const Tensor&, const Tensor&, Activation) { missing("activation"); }
void Kernels::activation_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, Activation) {
  missing("activation_backward");
}
void Kernels::gated(const Tensor&, const Tensor&, const Tensor&, Activation) { missing("gated"); }
void Kernels::gated_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, Activation) {
  missing("gated_backward");
}
void Kernels::norm(const Tensor&, const NormStats&, const Tensor&, const NormWeights&, const NormArgs&) {
  missing("norm");
}
void Kernels::norm_backward(const NormGrads&, const Tensor&, const Tensor&, const NormSaved&,
                            const NormArgs&) {
  missing("norm_backward");
}
void Kernels::sum_norm(const SumNormOut&, const SumNormIn&, const NormWeights&, const NormArgs&) {
  missing("sum_norm");
}
void Kernels::scale_rows(const Tensor&, const Tensor&, const Tensor&) { missing("scale_rows"); }
void Kernels::dot_rows(const Tensor&, const Tensor&, const Tensor&) { missing("dot_rows"); }
void Kernels::softmax(const Tensor&, const Tensor&, Mask, const Tensor&) { missing("softmax"); }
void Kernels::softmax_backward(const Tensor&, const Tensor&, const Tensor&) { missing("softmax_backward"); }
void Kernels::log_sum_exp(const Tensor&, const Tensor&) { missing("log_sum_exp"); }
void Kernels::attention(const AttentionOut&, const Attended&, const AttentionArgs&) { missing("attention"); }
void Kernels::attention_backward(const AttentionGrads&, const Tensor&, const AttentionOut&, const Attended&,
                                 const AttentionArgs&) {
  missing("attention_backward");
}
void Kernels::merge_attention(const AttentionOut&, const AttentionOut&) { missing("merge_attention"); }
void Kernels::rope(const Tensor&, const RopeArgs&) { missing("rope"); }
void Kernels::gather(const Tensor&, const Tensor&, const Tensor&, std::int64_t) { missing("gather"); }
void Kernels::scatter_add(const Tensor&, const Tensor&, const Tensor&, std::int64_t) {
  missing("scatter_add");
}
void Kernels::loss_max(const LossParts&, const Tensor&, VocabularyPart) { missing("loss_max"); }
void Kernels::loss_sums(const LossParts&, const Tensor&, const Tensor&, VocabularyPart) {
  missing("loss_sums");
}
void Kernels::loss_finish(const Tensor&, const LossParts&, const LossArgs&, std::int64_t) {
  missing("loss_finish");
}
void Kernels::loss_backward(const Tensor&, const LossParts&, const LossTargets&, VocabularyPart,
                            const LossArgs&) {
  missing("loss_backward");
}
void Kernels::sum(const Tensor&, const Tensor&) { missing("sum"); }
void Kernels::sum_exact(const Tensor&, const Tensor&) { missing("sum_exact"); }
void Kernels::sum_squares(const Tensor&, const Tensor&) { missing("sum_squares"); }
void Kernels::max_abs(const Tensor&, const Tensor&) { missing("max_abs"); }
void Kernels::find_nonfinite(const Tensor&, const Tensor&) { missing("find_nonfinite"); }
void Kernels::count_zeros(const Tensor&, const Tensor&) { missing("count_zeros"); }
void Kernels::top_k(const Tensor&, const Tensor&, const Tensor&) { missing("top_k"); }
void Kernels::sort_by_key(const Tensor&, const Tensor&, const Tensor&) { missing("sort_by_key"); }
void Kernels::gather_rows(const Tensor&, const Tensor&, const Tensor&) { missing("gather_rows"); }
void Kernels::scatter_add_rows(const Tensor&, const Tensor&, const Tensor&, const Tensor&) {
  missing("scatter_add_rows");
}
void Kernels::adam(const AdamState&, const Tensor&, const AdamArgs&) { missing("adam"); }
void Kernels::sgd(const SgdState&, const Tensor&, const SgdArgs&) { missing("sgd"); }
void Kernels::lion(const SgdState&, const Tensor&, const LionArgs&) { missing("lion"); }
void Kernels::adam_direction(const AdamState&, const Tensor&, const AdamArgs&) { missing("adam_direction"); }
void Kernels::descend(const Tensor&, const Tensor&, const Tensor&, const DescentArgs&) { missing("descend"); }
void Kernels::root(const Tensor&, const Tensor&, float) { missing("root"); }
void Kernels::take_signs(const Tensor&, const Tensor&, float) { missing("take_signs"); }
void Kernels::add_signs(const Tensor&, const Tensor&, float) { missing("add_signs"); }

}  // namespace weft
