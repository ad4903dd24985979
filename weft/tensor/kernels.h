// Every computation a backend can offer. The body of each hands it on, with the kind of work that it is: to
// nobody, if nothing else is said. Shapes and types are checked by ops/ before these are called; t stands for
// all leading dimensions together.
//
// Unless a line says otherwise: tensors are of one float type (f32, bf16, f16), each of its own where "mixed"
// is said; strides are any; arithmetic is in f32 or better and rounds once, when it stores; an operand that
// may be empty is a Tensor without memory; zero sizes are legal and do what a loop over nothing does; sums
// have a fixed order, whatever the number of threads.
#pragma once

#include "weft/tensor/args.h"
#include "weft/tensor/kernel_call.h"
#include "weft/tensor/routing.h"

namespace weft {

class Kernels {
 public:
  virtual ~Kernels() = default;
  virtual const char* name() const = 0;

  // ---- products: f32, bf16, f16 operands, sums in f32; out f32 or the operands' type. Where out or an
  // operand of matmul is f64, sums are in double: operands then may be of two types, out is f64 or f32, all
  // of rank 2
  /// out[.., m, n] (+)= a[.., m, k] b[.., k, n] (+ bias[n]); rank 2 or 3, all of one rank; the last dimension
  /// has step 1, the others any (ops turns a transposed view into Read::transposed); bias mixed
  virtual void matmul(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs& how) {
    next({"matmul", Work::product}, &Kernels::matmul, out, a, b, how);
  }
  /// Whether such products of this type are one walk over memory with the activation: then it is worth having
  /// the bias in them. All that follows the product has the product's type.
  virtual bool activates_products(Dtype, Activation) const { return false; }
  /// before = a b (+ bias), y = f(before), which may be of the sum before it was stored; rank 2
  virtual void matmul_activated(const Tensor& y, const Tensor& before, const Tensor& a, const Tensor& b,
                                const ActivatedArgs& how) {
    matmul(before, a, b, how.product);
    activation(y, before, {}, how.f);
  }
  /// out = f'(before) * (a b), the way back through it; rank 2
  virtual void matmul_derived(const Tensor& out, const Tensor& before, const Tensor& a, const Tensor& b,
                              const ActivatedArgs& how) {
    matmul(out, a, b, how.product);
    activation_backward(out, out, before, {}, how.f);
  }
  /// dw[m, n] (+)= dy^T x of dy [t, m] and x [t, n], db[m] += sum over t of dy[t, m]
  virtual void weight_gradient(const LinearGrads& grads, const Tensor& dy, const Tensor& x) {
    matmul(grads.dw.sum, dy, x, {.a = Read::transposed, .accumulate = grads.dw.on_top});
    sum_rows(grads.db, dy);
  }
  /// Rows by group: out_g[m_g, n] (+)= a_g[m_g, k] b[g] (+ bias[g, n]); with a transposed, out[g] (+)= a_g^T
  /// b_g, zeros for an empty group unless accumulating. Rows behind the last group, which only the device can
  /// know of, become zeros, or where it accumulates stay as they are.
  virtual void grouped_matmul(const Tensor& out, const Tensor& a, const Tensor& b, const Groups& groups,
                              const MatmulArgs& how) {
    next({"grouped_matmul", Work::product}, &Kernels::grouped_matmul, out, a, b, groups, how);
  }

  /// Whether groups of operands of this type may be known to the device alone.
  virtual bool multiplies_unseen_groups(Dtype) const { return false; }

  // ---- eight bits: matrices of f8e4m3 or f8e5m2, contiguous, whose sizes are multiples of f8_unit
  /// out = x [r, c] times scale f32 [1], rounded to the nearest (ties to even); what is larger than out's
  /// type holds becomes its largest, what is not finite NaN. met f32 [1], where given, becomes the greatest
  /// finite |x| if that is more
  virtual void quantize(const Quantized& out, const Tensor& x, const Tensor& scale, const Tensor& met) {
    next({"quantize", Work::elementwise}, &Kernels::quantize, out, x, scale, met);
  }
  /// The same with scales that follow from the greatest finite |x| of each block; sizes are multiples of
  /// f8_unit_of(blocks), inverses lie as F8Grid has them, 1 (an exponent: 0) where a block has no number
  virtual void quantize_blocks(const Quantized& out, const Tensor& x, F8Blocks blocks) {
    next({"quantize_blocks", Work::elementwise}, &Kernels::quantize_blocks, out, x, blocks);
  }
  /// out [m, n] (+)= a [m', k] b [n', k]^T times both inverses (+ bias), where m' and n' are m and n rounded
  /// up; a and b may be of two types, but not both f8e5m2; out of dense rows; bias mixed
  virtual void scaled_matmul(const Tensor& out, const Tensor& a, const Tensor& b, const ScaledArgs& how) {
    next({"scaled_matmul", Work::product}, &Kernels::scaled_matmul, out, a, b, how);
  }
  /// rows f32 [.., 2 + remembered] of ScaleRow: scales follow from what was met, which then moves on by one
  virtual void renew_scales(const Tensor& rows, const ScaleArgs& how) {
    next({"renew_scales", Work::elementwise}, &Kernels::renew_scales, rows, how);
  }

  // ---- elementwise
  /// any type
  virtual void fill(const Tensor& out, double value) {
    next({"fill", Work::elementwise}, &Kernels::fill, out, value);
  }
  /// out = in, between any two types; to an integer toward zero
  virtual void copy(const Tensor& out, const Tensor& in) {
    next({"copy", Work::elementwise}, &Kernels::copy, out, in);
  }
  /// out = a + b; mixed; out may be a or b
  virtual void add(const Tensor& out, const Tensor& a, const Tensor& b) {
    next({"add", Work::elementwise}, &Kernels::add, out, a, b);
  }
  /// out += alpha x; mixed
  virtual void add_scaled(const Tensor& out, const Tensor& x, float alpha) {
    next({"add_scaled", Work::elementwise}, &Kernels::add_scaled, out, x, alpha);
  }
  virtual void scale(const Tensor& x, float alpha) {
    next({"scale", Work::elementwise}, &Kernels::scale, x, alpha);
  }
  /// out = a * b; mixed; out may be a or b
  virtual void multiply(const Tensor& out, const Tensor& a, const Tensor& b) {
    next({"multiply", Work::elementwise}, &Kernels::multiply, out, a, b);
  }
  /// x[t, h] += bias[h]; mixed
  virtual void add_bias(const Tensor& x, const Tensor& bias) {
    next({"add_bias", Work::elementwise}, &Kernels::add_bias, x, bias);
  }
  /// dbias[h] += sum over t of dy[t, h]; dbias f32
  virtual void sum_rows(const Tensor& dbias, const Tensor& dy) {
    next({"sum_rows", Work::elementwise}, &Kernels::sum_rows, dbias, dy);
  }
  /// y = x / (1 - p) where kept, else 0; kept is word(element) >= share(p) (base/random.h); x [s, b, h];
  /// mixed; y may be x. Its own derivative.
  virtual void dropout(const Tensor& y, const Tensor& x, const DropoutArgs& how) {
    next({"dropout", Work::elementwise}, &Kernels::dropout, y, x, how);
  }
  /// out = residual + dropout(x + bias); [s, b, h]; bias may be empty; mixed; out may be x or residual
  virtual void bias_dropout_add(const Tensor& out, const Tensor& x, const Tensor& bias,
                                const Tensor& residual, const DropoutArgs& how) {
    next({"bias_dropout_add", Work::elementwise}, &Kernels::bias_dropout_add, out, x, bias, residual, how);
  }
  /// mean + deviation * normal(element), element = row * columns + column in the whole matrix; out [rows,
  /// columns]
  virtual void random_normal(const Tensor& out, float mean, float deviation, const RandomBlock& block) {
    next({"random_normal", Work::other}, &Kernels::random_normal, out, mean, deviation, block);
  }
  /// low + (high - low) * uniform(element)
  virtual void random_uniform(const Tensor& out, float low, float high, const RandomBlock& block) {
    next({"random_uniform", Work::other}, &Kernels::random_uniform, out, low, high, block);
  }

  // ---- activations: x [t, f], bias [f] or empty is added before; bias mixed
  virtual void activation(const Tensor& y, const Tensor& x, const Tensor& bias, Activation f) {
    next({"activation", Work::elementwise}, &Kernels::activation, y, x, bias, f);
  }
  /// dx = f'(x + bias) dy; dx may be dy
  virtual void activation_backward(const Tensor& dx, const Tensor& dy, const Tensor& x, const Tensor& bias,
                                   Activation f) {
    next({"activation_backward", Work::elementwise}, &Kernels::activation_backward, dx, dy, x, bias, f);
  }
  /// x [t, 2f] holds gate and up: y [t, f] = f(gate) (up + offset); kinds.h has the rest
  virtual void gated(const Tensor& y, const Tensor& x, const Tensor& bias, const Gate& gate) {
    next({"gated", Work::elementwise}, &Kernels::gated, y, x, bias, gate);
  }
  virtual void gated_backward(const Tensor& dx, const Tensor& dy, const Tensor& x, const Tensor& bias,
                              const Gate& gate) {
    next({"gated_backward", Work::elementwise}, &Kernels::gated_backward, dx, dy, x, bias, gate);
  }

  // ---- norms: x [t, h]; mixed (residual streams may be f32); stats f32, stats.mean empty for RMS
  virtual void norm(const Tensor& y, const NormStats& stats, const Tensor& x, const NormWeights& weights,
                    const NormArgs& how) {
    next({"norm", Work::norm}, &Kernels::norm, y, stats, x, weights, how);
  }
  /// dx = (residual +) J^T dy; residual may be empty; dx may be dy or residual; dgain and dbias, where given,
  /// are added to; rounded, where given, may be dy
  virtual void norm_backward(const NormGrads& grads, const Tensor& dy, const Tensor& residual,
                             const NormSaved& saved, const NormArgs& how) {
    next({"norm_backward", Work::norm}, &Kernels::norm_backward, grads, dy, residual, saved, how);
  }
  /// sum = residual + dropout(x + bias), y = norm(sum as stored); [s, b, h]; sum may be x or residual
  virtual void sum_norm(const SumNormOut& out, const SumNormIn& in, const NormWeights& weights,
                        const NormArgs& how) {
    next({"sum_norm", Work::norm}, &Kernels::sum_norm, out, in, weights, how);
  }
  /// y[t, h] = x[t, h] * factor[t]; factor f32; y may be x
  virtual void scale_rows(const Tensor& y, const Tensor& x, const Tensor& factor) {
    next({"scale_rows", Work::norm}, &Kernels::scale_rows, y, x, factor);
  }
  /// out[t] = sum over h of a[t, h] b[t, h]; out f32; the derivative of a row's factor
  virtual void dot_rows(const Tensor& out, const Tensor& a, const Tensor& b) {
    next({"dot_rows", Work::norm}, &Kernels::dot_rows, out, a, b);
  }

  // ---- softmax and attention
  /// x [t, n] -> y; a row of nothing but -inf becomes zeros; y may be x
  virtual void softmax(const Tensor& y, const Tensor& x) {
    next({"softmax", Work::attention}, &Kernels::softmax, y, x);
  }
  /// Probabilities sum to one over what is seen, then some are dropped; lse knows nothing of that (args.h)
  virtual void attention(const AttentionOut& out, const Attended& in, const AttentionArgs& how) {
    next({"attention", Work::attention}, &Kernels::attention, out, in, how);
  }
  /// Probabilities are exp(score - out.lse) and the row's correction is <dout, out.o>, so that with merged
  /// out each part of the keys gives its share of the gradients.
  virtual void attention_backward(const AttentionGrads& grads, const Tensor& dout, const AttentionOut& out,
                                  const Attended& in, const AttentionArgs& how) {
    next({"attention_backward", Work::attention}, &Kernels::attention_backward, grads, dout, out, in, how);
  }
  /// greatest f32 [n] becomes the greatest of itself and of rows f32 [b, n, s]
  virtual void raise_greatest(const Tensor& greatest, const Tensor& rows) {
    next({"raise_greatest", Work::attention}, &Kernels::raise_greatest, greatest, rows);
  }
  /// Merges parts over different keys: into (o, lse) comes (part.o, part.lse); o mixed
  virtual void merge_attention(const AttentionOut& into, const AttentionOut& part) {
    next({"merge_attention", Work::attention}, &Kernels::merge_attention, into, part);
  }
  /// terms [t, n] *= -e^(sinks[n] - lse[t, n]): the derivative of a sink's score; f32
  virtual void sink_terms(const Tensor& terms, const Tensor& lse, const Tensor& sinks) {
    next({"sink_terms", Work::attention}, &Kernels::sink_terms, terms, lse, sinks);
  }
  /// In place on the first 2 * angles.dim(1) of d; x [s, b, .., d]; without positions step i is at position i
  virtual void rope(const Tensor& x, const RopeArgs& how) {
    next({"rope", Work::attention}, &Kernels::rope, x, how);
  }

  // ---- layers that remember: mixed, last dimensions of step 1; args.h says what
  /// y [s, b, g, c] = silu(sum over j of weight[g, c, j] x[i - taps + 1 + j]), steps before the first are 0
  virtual void convolve(const Tensor& y, const Tensor& x, const Filters& filters) {
    next({"convolve", Work::elementwise}, &Kernels::convolve, y, x, filters);
  }
  virtual void convolve_backward(const ConvolveGrads& grads, const Tensor& dy, const Tensor& x,
                                 const Filters& filters) {
    next({"convolve_backward", Work::elementwise}, &Kernels::convolve_backward, grads, dy, x, filters);
  }
  virtual void delta_rule(const Tensor& o, const DeltaIn& in) {
    next({"delta_rule", Work::attention}, &Kernels::delta_rule, o, in);
  }
  virtual void delta_rule_backward(const DeltaGrads& grads, const Tensor& dout, const DeltaIn& in) {
    next({"delta_rule_backward", Work::attention}, &Kernels::delta_rule_backward, grads, dout, in);
  }

  // ---- embedding: ids i32 [t]; rows [first, first + table.dim(0)) are held here, others give zero rows;
  // mixed
  virtual void gather(const Tensor& out, const Tensor& table, const Tensor& ids, std::int64_t first) {
    next({"gather", Work::embedding}, &Kernels::gather, out, table, ids, first);
  }
  /// dtable[id - first] += dout, f32, in ascending order of t for every row
  virtual void scatter_add(const Tensor& dtable, const Tensor& dout, const Tensor& ids, std::int64_t first) {
    next({"scatter_add", Work::embedding}, &Kernels::scatter_add, dtable, dout, ids, first);
  }

  // ---- loss: logits [t, columns], targets i32 [t], parts f32 [t]
  virtual void loss_max(const LossParts& parts, const Tensor& logits, VocabularyPart part) {
    next({"loss_max", Work::loss}, &Kernels::loss_max, parts, logits, part);
  }
  virtual void loss_sums(const LossParts& parts, const Tensor& logits, const Tensor& targets,
                         VocabularyPart part) {
    next({"loss_sums", Work::loss}, &Kernels::loss_sums, parts, logits, targets, part);
  }
  /// loss[t] f32 from the parts summed over the whole vocabulary
  virtual void loss_finish(const Tensor& loss, const LossParts& parts) {
    next({"loss_finish", Work::loss}, &Kernels::loss_finish, loss, parts);
  }
  /// logits become their gradient times weight[t]
  virtual void loss_backward(const Tensor& logits, const LossParts& parts, const LossTargets& targets,
                             VocabularyPart part) {
    next({"loss_backward", Work::loss}, &Kernels::loss_backward, logits, parts, targets, part);
  }

  /// Whether the next is one walk over such logits.
  virtual bool loses_in_one_walk(const Tensor&) const { return false; }
  /// All of it where the whole vocabulary is here: loss[t], and logits become its gradient times weight[t]
  virtual void loss_and_gradient(const Tensor& loss, const Tensor& logits, const LossTargets& targets,
                                 VocabularyPart part);

  // ---- sums: results are tensors of one element
  /// out f64 = sum of x, of any type
  virtual void sum(const Tensor& out, const Tensor& x) { next({"sum", Work::other}, &Kernels::sum, out, x); }
  /// digits f64 [exact_digits] += the exact sum of x, or of its squares, as digits of tensor/exact_sum.h,
  /// carried: the same bits however x is cut into calls and ranks, and in whatever order these are added
  virtual void sum_exact(const Tensor& digits, const Tensor& x) {
    next({"sum_exact", Work::other}, &Kernels::sum_exact, digits, x);
  }
  virtual void sum_squares(const Tensor& digits, const Tensor& x) {
    next({"sum_squares", Work::other}, &Kernels::sum_squares, digits, x);
  }
  /// out f32 [n] = |a| / |b|, where digits f64 [n, 2, exact_digits] are exact sums of a's and of b's squares;
  /// 1 / |b| of digits [n, 1, exact_digits]; all contiguous
  virtual void norm_ratios(const Tensor& out, const Tensor& digits, const NormRatioArgs& how) {
    next({"norm_ratios", Work::other}, &Kernels::norm_ratios, out, digits, how);
  }
  /// out f64 = greatest |x|; NaN where x holds one
  virtual void max_abs(const Tensor& out, const Tensor& x) {
    next({"max_abs", Work::other}, &Kernels::max_abs, out, x);
  }
  /// out i64 = index of the first element that is not finite, -1 if all are
  virtual void find_nonfinite(const Tensor& out, const Tensor& x) {
    next({"find_nonfinite", Work::other}, &Kernels::find_nonfinite, out, x);
  }
  /// out i64 = elements that are zero
  virtual void count_zeros(const Tensor& out, const Tensor& x) {
    next({"count_zeros", Work::other}, &Kernels::count_zeros, out, x);
  }

  // ---- choosing and moving rows (experts)
  /// The k greatest of every row of x [t, e] f32 or f64, in descending order, ties to the lower index: values
  /// [t, k] of that type, indices i32 [t, k]
  virtual void top_k(const Tensor& values, const Tensor& indices, const Tensor& x) {
    next({"top_k", Work::other}, &Kernels::top_k, values, indices, x);
  }
  /// out[i] = x[index[i]]; index i32 [n]; a negative index gives zeros; mixed
  virtual void gather_rows(const Tensor& out, const Tensor& x, const Tensor& index) {
    next({"gather_rows", Work::other}, &Kernels::gather_rows, out, x, index);
  }
  /// out[index[i]] += weight[i] x[i], in ascending i; weight f32 [n] or empty; a negative index is skipped;
  /// mixed
  virtual void scatter_add_rows(const Tensor& out, const Tensor& x, const Tensor& index,
                                const Tensor& weight) {
    next({"scatter_add_rows", Work::other}, &Kernels::scatter_add_rows, out, x, index, weight);
  }

  // ---- experts for tokens: logits f32 or f64 [t, e], of whose type their gradients are and what is computed
  // on the way; contiguous like all that is f32, f64 or integer here
  /// k experts for every token, and their weights; bias f32 [e] or empty is added to what is compared, and is
  /// in no weight
  virtual void route(const Routed& out, const Tensor& logits, const Tensor& bias, const RouteArgs& how) {
    next({"route", Work::other}, &Kernels::route, out, logits, bias, how);
  }
  /// dlogits += the derivative of route's weights times dweights f32 [t, k]
  virtual void route_backward(const Tensor& dlogits, const Tensor& dweights, const Tensor& logits,
                              const Routed& routed, const RouteArgs& how) {
    next({"route_backward", Work::other}, &Kernels::route_backward, dlogits, dweights, logits, routed, how);
  }
  /// counts f32 [b, e]: how often each expert stands in the rows i of experts i32 [t, k] with i % b; a
  /// negative one counts nowhere
  virtual void count_experts(const Tensor& counts, const Tensor& experts) {
    next({"count_experts", Work::other}, &Kernels::count_experts, counts, experts);
  }
  /// terms f32 [t] = <scores of row i, factors f32 [b, e] at i % b>, where scores are all experts' and add up
  /// to one; dlogits, where given, += scale times the derivative of the sum of terms
  virtual void balance(const Tensor& terms, const Tensor& dlogits, const Tensor& logits,
                       const Tensor& factors, RouterScore score, float scale) {
    next({"balance", Work::other}, &Kernels::balance, terms, dlogits, logits, factors, score, scale);
  }
  /// terms f32 [t] = (log of the sum of exp(logits))^2; dlogits, where given, += scale times its derivative
  virtual void square_log_sum(const Tensor& terms, const Tensor& dlogits, const Tensor& logits, float scale) {
    next({"square_log_sum", Work::other}, &Kernels::square_log_sum, terms, dlogits, logits, scale);
  }
  /// kept i32 [t, k] = experts, but -1 where an expert has more than `most` tokens: those of lesser weight
  /// (of equal ones the later), or the later
  virtual void limit_experts(const Tensor& kept, const Routed& routed, std::int64_t most, DropPolicy policy) {
    next({"limit_experts", Work::other}, &Kernels::limit_experts, kept, routed, most, policy);
  }
  /// bias f32 [e] += rate where counts f32 [e] is below its mean, -= rate where it is above
  virtual void follow_counts(const Tensor& bias, const Tensor& counts, float rate) {
    next({"follow_counts", Work::other}, &Kernels::follow_counts, bias, counts, rate);
  }
  /// Rows in the order of experts i32 [t, k], then of tokens; a negative expert gives no row. With `room`
  /// each expert has so many rows: its first, then none
  virtual void plan_rows(const RowPlan& out, const Tensor& experts, std::int64_t room) {
    next({"plan_rows", Work::other}, &Kernels::plan_rows, out, experts, room);
  }

  // ---- optimizers: one pass; grad f32 (or bf16), flat
  virtual void adam(const AdamState& state, const Tensor& grad, const AdamArgs& how) {
    next({"adam", Work::optimizer}, &Kernels::adam, state, grad, how);
  }
  virtual void sgd(const SgdState& state, const Tensor& grad, const SgdArgs& how) {
    next({"sgd", Work::optimizer}, &Kernels::sgd, state, grad, how);
  }
  virtual void lion(const SgdState& state, const Tensor& grad, const LionArgs& how) {
    next({"lion", Work::optimizer}, &Kernels::lion, state, grad, how);
  }
  /// adam's moments, and into grad (f32) the direction in which it would go: m / (sqrt(v) + epsilon) (+ decay
  /// master); moments f32, master read only, no copy
  virtual void adam_direction(const AdamState& state, const Tensor& grad, const AdamArgs& how) {
    next({"adam_direction", Work::optimizer}, &Kernels::adam_direction, state, grad, how);
  }
  /// master = keep master - rate (times by) x; copy = master, where there is one; x f32
  virtual void descend(const Tensor& master, const Tensor& copy, const Tensor& x, const DescentArgs& how) {
    next({"descend", Work::optimizer}, &Kernels::descend, master, copy, x, how);
  }
  /// out = sqrt(x) + epsilon; f32; out may be x
  virtual void root(const Tensor& out, const Tensor& x, float epsilon) {
    next({"root", Work::optimizer}, &Kernels::root, out, x, epsilon);
  }
  /// bits u8 [n / 8]: 1 where x f32 [n] is not negative, the first element highest; x loses size f32
  /// [1], with that sign
  virtual void take_signs(const Tensor& bits, const Tensor& x, const Tensor& size) {
    next({"take_signs", Work::optimizer}, &Kernels::take_signs, bits, x, size);
  }
  /// out f32 [n] += size f32 [1] / share, with the sign of each bit
  virtual void add_signs(const Tensor& out, const Tensor& bits, const Tensor& size, float share) {
    next({"add_signs", Work::optimizer}, &Kernels::add_signs, out, bits, size, share);
  }
  /// packed u8 [packed_bytes(n)] = x [n]; args.h says how
  virtual void pack_blocks(const Tensor& packed, const Tensor& x, const BlockCode& how) {
    next({"pack_blocks", Work::other}, &Kernels::pack_blocks, packed, x, how);
  }
  /// out [n] = (or += in f32, rounded once) what was packed
  virtual void unpack_blocks(const Tensor& out, const Tensor& packed, const BlockCode& how) {
    next({"unpack_blocks", Work::other}, &Kernels::unpack_blocks, out, packed, how);
  }

 protected:
  /// What these kernels have not got. Handed to nobody, it fails by name; who stands before others hands it
  /// to them, now or later.
  virtual void hand_on(const KernelCall& call);

 private:
  /// Made beside the table of this class, and kept there for the tables of all who derive from it.
  template <class Kernel, class... Operands>
  [[gnu::used]] void next(const KernelName& name, Kernel kernel, const Operands&... operands);
};

}  // namespace weft
