// Linear layers of many experts, each for rows of its own: products in groups.
#pragma once

#include <array>
#include <vector>

#include "weft/nn/linear.h"
#include "weft/tensor/args.h"

namespace weft {

/// So many experts has one layer of one rank, at most; in exact mode times the sequences that meet there.
inline constexpr int most_experts_here = 1024;

/// Rows [at[e], at[e + 1]) are expert e's: the host's, or where products take them so, the device's alone.
struct RowGroups {
  std::array<std::int64_t, most_experts_here + 1> at{};
  int count = 0;
  Tensor unseen = {};  // i64 [count + 1]; then `at` is empty
  Share of(int e) const { return {at[std::size_t(e)], at[std::size_t(e) + 1] - at[std::size_t(e)]}; }
  Groups groups() const {
    return unseen ? Groups{{}, unseen} : Groups{{at.data(), std::size_t(count) + 1}, {}};
  }
};

/// How experts' sums are taken, and by whom.
struct ExpertSums {
  SumRules sums = {};
  int etp = 1;  // ranks that share each expert
  /// Boxes of the weights that are rows of a cut matrix: a gated one has two.
  int boxes = 1;
  /// Ranks that see the same rows and hold the same experts, where sums are exact: each makes its share of a
  /// gradient.
  int copies = 1, copy = 0;
  int slabs() const { return sums.slabs(etp); }
};

/// Of each expert that a rank holds a weight [out, in], and a bias [out] or none. Parameters of a kind lie
/// behind each other in memory, as they are visited.
class ExpertProducts {
 public:
  ExpertProducts(std::vector<Parameter> weights, std::vector<Parameter> biases, const ExpertSums& sums = {})
      : weights_(std::move(weights)), biases_(std::move(biases)), sums_(sums) {}
  bool biased() const { return !biases_.empty(); }
  /// Whether rows like these may come in groups that the device alone knows.
  bool take_unseen_groups(const Tensor& x) const;
  /// x [n, in] -> x W^T [n, out], bias added; the contraction is whole
  Tensor forward(const Tensor& x, const RowGroups& rows) const;
  /// The same of a contraction that ranks may cut, as terms of a sum over them, f32 where sums are exact;
  /// each row's bias is multiplied by its factor f32 [n].
  Tensor forward_terms(const Tensor& x, const Tensor& factors, const RowGroups& rows) const;
  /// dy [n, out] -> dy W [n, in]; the contraction is whole
  Tensor input_grad(const Tensor& dy, const RowGroups& rows) const;
  /// The same as terms [n, parts * in], where sums are exact a part for each box of the weights.
  Tensor input_grad_terms(const Tensor& dy, const RowGroups& rows) const;
  int parts() const { return sums_.sums.in_slabs() ? sums_.boxes : 1; }
  /// f32 [n]: what dy says of the factors that biases were multiplied by
  Tensor factor_grad(const Tensor& dy, const RowGroups& rows) const;
  /// f32 [n]: the product of each pair of rows, as terms of a sum over ranks that share an expert
  Tensor dot_terms(const Tensor& a, const Tensor& b) const;
  /// dW += dy^T x and db += the sum of dy, or of its rows times their factors: an expert's rows at once, or
  /// sequence by sequence where sums are exact.
  void add_grads(const Tensor& dy, const Tensor& x, const Tensor& factors, const RowGroups& rows,
                 const RowGroups& sequences);
  void each_parameter(const VisitParameter& visit);

 private:
  /// All experts' products share scales.
  const Fp8& fp8() const { return weights_.front().fp8; }
  bool in_eight_bits() const { return fp8().on(); }
  void add_weight_grads(const Tensor& dy, const Tensor& x, const RowGroups& rows) const;
  void add_bias_grads(const Tensor& dy, const RowGroups& rows) const;
  void add_by_sequence(const Tensor& dy, const Tensor& x, const Tensor& weighed,
                       const RowGroups& sequences) const;
  void added() const;
  std::vector<Parameter> weights_, biases_;
  ExpertSums sums_;
};

}  // namespace weft
