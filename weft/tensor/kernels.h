// Every computation a backend can offer. The default body of each is "not here". Shapes and types are checked
// by ops/ before these are called; t stands for all leading dimensions together.
//
// Unless a line says otherwise: tensors are of one float type (f32, bf16, f16), each of its own where "mixed"
// is said; strides are any; arithmetic is in f32 or better and rounds once, when it stores; an operand that
// may be empty is a Tensor without memory; zero sizes are legal and do what a loop over nothing does; sums
// have a fixed order, whatever the number of threads.
#pragma once

#include "weft/tensor/args.h"

namespace weft {

class Kernels {
 public:
  virtual ~Kernels() = default;
  virtual const char* name() const = 0;

  // ---- products: f32, bf16, f16 operands, sums in f32; out f32 or the operands' type
  /// out[.., m, n] (+)= a[.., m, k] b[.., k, n] (+ bias[n]); rank 2 or 3, all of one rank; the last dimension
  /// has step 1, the others any (ops turns a transposed view into Read::transposed); b may be packed, then
  /// its shape is that of what it stands for, [k, n], and Read is as_is; bias mixed
  virtual void matmul(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs&);
  /// Rows by group: out_g[m_g, n] (+)= a_g[m_g, k] b[g] (+ bias[g, n]); with a transposed, out[g] (+)= a_g^T
  /// b_g, zeros for an empty group unless accumulating
  virtual void grouped_matmul(const Tensor& out, const Tensor& a, const Tensor& b, Groups, const MatmulArgs&);
  /// Bytes of storage that w's packed form takes, 0 where this backend gains nothing from packing it.
  virtual std::int64_t packed_bytes(const Tensor& w, Read);
  /// packed = w (or its transposed), in the order that products with it as b like best
  virtual void pack(const Tensor& packed, const Tensor& w, Read);

  // ---- elementwise
  /// any type
  virtual void fill(const Tensor& out, double value);
  /// out = in, between any two types; to an integer toward zero
  virtual void copy(const Tensor& out, const Tensor& in);
  /// out = a + b; mixed; out may be a or b
  virtual void add(const Tensor& out, const Tensor& a, const Tensor& b);
  /// out += alpha x; mixed
  virtual void add_scaled(const Tensor& out, const Tensor& x, float alpha);
  virtual void scale(const Tensor& x, float alpha);
  /// out = a * b; mixed; out may be a or b
  virtual void multiply(const Tensor& out, const Tensor& a, const Tensor& b);
  /// x[t, h] += bias[h]; mixed
  virtual void add_bias(const Tensor& x, const Tensor& bias);
  /// dbias[h] += sum over t of dy[t, h]; dbias f32
  virtual void sum_rows(const Tensor& dbias, const Tensor& dy);
  /// y = x / (1 - p) where kept, else 0; kept is word(element) >= share(p) (base/random.h); x [s, b, h]; y
  /// may be x. Its own derivative.
  virtual void dropout(const Tensor& y, const Tensor& x, const DropoutArgs&);
  /// out = residual + dropout(x + bias); [s, b, h]; bias may be empty; mixed; out may be x or residual
  virtual void bias_dropout_add(const Tensor& out, const Tensor& x, const Tensor& bias,
                                const Tensor& residual, const DropoutArgs&);
  /// mean + deviation * normal(element), element = row * columns + column in the whole matrix; out [rows,
  /// columns]
  virtual void random_normal(const Tensor& out, float mean, float deviation, const RandomBlock&);
  /// low + (high - low) * uniform(element)
  virtual void random_uniform(const Tensor& out, float low, float high, const RandomBlock&);

  // ---- activations: x [t, f], bias [f] or empty is added before; bias mixed
  virtual void activation(const Tensor& y, const Tensor& x, const Tensor& bias, Activation);
  /// dx = f'(x + bias) dy; dx may be dy
  virtual void activation_backward(const Tensor& dx, const Tensor& dy, const Tensor& x, const Tensor& bias,
                                   Activation);
  /// x [t, 2f] holds gate and up: y [t, f] = f(gate) * up
  virtual void gated(const Tensor& y, const Tensor& x, const Tensor& bias, Activation);
  virtual void gated_backward(const Tensor& dx, const Tensor& dy, const Tensor& x, const Tensor& bias,
                              Activation);

  // ---- norms: x [t, h]; mixed (residual streams may be f32); stats f32, stats.mean empty for RMS
  virtual void norm(const Tensor& y, const NormStats&, const Tensor& x, const NormWeights&, const NormArgs&);
  /// dx = (residual +) J^T dy; residual may be empty; dx may be dy or residual; dgain and dbias, where given,
  /// are added to
  virtual void norm_backward(const NormGrads&, const Tensor& dy, const Tensor& residual, const NormSaved&,
                             const NormArgs&);
  /// sum = residual + dropout(x + bias), y = norm(sum as stored); [s, b, h]; sum may be x or residual
  virtual void sum_norm(const SumNormOut&, const SumNormIn&, const NormWeights&, const NormArgs&);
  /// y[t, h] = x[t, h] * factor[t]; factor f32; y may be x
  virtual void scale_rows(const Tensor& y, const Tensor& x, const Tensor& factor);
  /// out[t] = sum over h of a[t, h] b[t, h]; out f32; the derivative of a row's factor
  virtual void dot_rows(const Tensor& out, const Tensor& a, const Tensor& b);

  // ---- softmax and attention
  /// x [b, .., sq, sk] -> y; causal: key j <= query i + sk - sq; padding: u8 [b, sk], 0 is masked, or empty;
  /// a row that sees nothing becomes zeros; y may be x
  virtual void softmax(const Tensor& y, const Tensor& x, Mask, const Tensor& padding);
  /// dx may be dy
  virtual void softmax_backward(const Tensor& dx, const Tensor& dy, const Tensor& y);
  /// out[t] = log of the sum over the last dimension of exp(x); out f32
  virtual void log_sum_exp(const Tensor& out, const Tensor& x);
  /// Probabilities are normalised over what is seen, then dropped; lse knows nothing of dropout. args.h has
  /// the rest
  virtual void attention(const AttentionOut&, const Attended&, const AttentionArgs&);
  /// Probabilities are exp(score - out.lse) and the row's correction is <dout, out.o>, so that with merged
  /// out each part of the keys gives its share of the gradients.
  virtual void attention_backward(const AttentionGrads&, const Tensor& dout, const AttentionOut& out,
                                  const Attended&, const AttentionArgs&);
  /// Merges parts over different keys: into (o, lse) comes (part.o, part.lse); o mixed
  virtual void merge_attention(const AttentionOut& into, const AttentionOut& part);
  /// In place on the first 2 * angles.dim(1) of d; x [s, b, .., d]; without positions step i is at position i
  virtual void rope(const Tensor& x, const RopeArgs&);

  // ---- embedding: ids i32 [t]; rows [first, first + table.dim(0)) are held here, others give zero rows;
  // mixed
  virtual void gather(const Tensor& out, const Tensor& table, const Tensor& ids, std::int64_t first);
  /// dtable[id - first] += dout, f32, in ascending order of t for every row
  virtual void scatter_add(const Tensor& dtable, const Tensor& dout, const Tensor& ids, std::int64_t first);

  // ---- loss: logits [t, columns], targets i32 [t], parts f32 [t]
  virtual void loss_max(const LossParts&, const Tensor& logits, VocabularyPart);
  virtual void loss_sums(const LossParts&, const Tensor& logits, const Tensor& targets, VocabularyPart);
  /// loss[t] f32 from the parts summed over the whole vocabulary
  virtual void loss_finish(const Tensor& loss, const LossParts&, const LossArgs&, std::int64_t whole);
  /// logits become their gradient times weight[t]
  virtual void loss_backward(const Tensor& logits, const LossParts&, const LossTargets&, VocabularyPart,
                             const LossArgs&);

  // ---- sums: results are tensors of one element
  /// out f64 = sum of x, of any type
  virtual void sum(const Tensor& out, const Tensor& x);
  /// digits f64 [exact_digits] += the exact sum of x, or of its squares, as digits of tensor/exact_sum.h,
  /// carried: the same bits however x is cut into calls and ranks, and in whatever order these are added
  virtual void sum_exact(const Tensor& digits, const Tensor& x);
  virtual void sum_squares(const Tensor& digits, const Tensor& x);
  /// out f64 = greatest |x|; NaN where x holds one
  virtual void max_abs(const Tensor& out, const Tensor& x);
  /// out i64 = index of the first element that is not finite, -1 if all are
  virtual void find_nonfinite(const Tensor& out, const Tensor& x);
  /// out i64 = elements that are zero
  virtual void count_zeros(const Tensor& out, const Tensor& x);

  // ---- choosing and moving rows (experts)
  /// The k greatest of every row of x [t, e] f32, in descending order, ties to the lower index: values f32,
  /// indices i32 [t, k]
  virtual void top_k(const Tensor& values, const Tensor& indices, const Tensor& x);
  /// Stable order of keys i32 [n] in [0, buckets): order i32 [n], counts i64 [buckets]
  virtual void sort_by_key(const Tensor& order, const Tensor& counts, const Tensor& keys);
  /// out[i] = x[index[i]]; index i32 [n]; a negative index gives zeros; mixed
  virtual void gather_rows(const Tensor& out, const Tensor& x, const Tensor& index);
  /// out[index[i]] += weight[i] x[i], in ascending i; weight f32 [n] or empty; a negative index is skipped;
  /// mixed
  virtual void scatter_add_rows(const Tensor& out, const Tensor& x, const Tensor& index,
                                const Tensor& weight);

  // ---- optimizers: one pass; grad f32 (or bf16), flat
  virtual void adam(const AdamState&, const Tensor& grad, const AdamArgs&);
  virtual void sgd(const SgdState&, const Tensor& grad, const SgdArgs&);
  virtual void lion(const SgdState&, const Tensor& grad, const LionArgs&);
  /// adam's moments, and into grad (f32) the direction in which it would go: m / (sqrt(v) + epsilon) (+ decay
  /// master); moments f32, master read only, no copy
  virtual void adam_direction(const AdamState&, const Tensor& grad, const AdamArgs&);
  /// master = keep master - rate x; copy = master, where there is one; x f32
  virtual void descend(const Tensor& master, const Tensor& copy, const Tensor& x, const DescentArgs&);
  /// out = sqrt(x) + epsilon; f32; out may be x
  virtual void root(const Tensor& out, const Tensor& x, float epsilon);
  /// bits u8 [n / 8]: 1 where x f32 [n] is not negative, the first element highest; x loses size, with that
  /// sign
  virtual void take_signs(const Tensor& bits, const Tensor& x, float size);
  /// out f32 [n] += size, with the sign of each bit
  virtual void add_signs(const Tensor& out, const Tensor& bits, float size);

 protected:
  [[noreturn]] void missing(const char* op) const;
};

}  // namespace weft
