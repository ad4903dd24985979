// y = x W^T (+ b), whole or cut over the ranks of a tensor-parallel circle.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/nn/parameter.h"
#include "weft/nn/pass.h"
#include "weft/nn/sum_rules.h"
#include "weft/ops/matmul.h"

namespace weft {

using VisitParameter = std::function<void(Parameter&)>;

/// Who adds a layer's bias: the product itself, or whoever reads y next, in the pass over memory it makes
/// anyway.
enum class BiasAdded : std::uint8_t { by_product, by_reader };

/// Rows of a weight that makes queries, keys and values, group by group, keys and values last. Exact sums
/// over rows take those apart, because ranks may share a group: each has queries of its own, and counts a
/// share of the rows that it has in common with others.
struct KeyRows {
  std::int64_t groups = 0;  // held here; 0: rows are no heads, or never shared
  std::int64_t of_group = 0;
  Share counted;
};

/// An activation that a gradient goes back through, and what it read; without `before`: none.
struct BackThrough {
  Tensor before;
  Activation f = Activation::gelu;
};

/// A gradient [t, out] of what a product made, and in eight bits where both products that go back from it
/// read it so; empty elsewhere.
struct OutputGrad {
  Tensor rows;
  Fp8Rounded rounded = {};
};

/// W [out, in], b [out] or none: the three multiplications of a linear layer.
class Product {
 public:
  Product(Parameter weight, std::optional<Parameter> bias, BiasAdded added, TokenCut context = TokenCut(),
          KeyRows keys = {})
      : weight_(std::move(weight)), bias_(std::move(bias)), added_(added), context_(context), keys_(keys) {}
  /// x [t, in] -> y [t, out]
  Tensor forward(const Tensor& x) const;
  /// The same, and an activation of it; the bias is added, whoever reads y otherwise. Not in eight bits.
  ops::Activated forward_activated(const Tensor& x, Activation f) const;
  /// For input_grad() and then owe_weight_grads(), which may have it one by one as well.
  OutputGrad output_grad(const Tensor& dy) const;
  /// dy [t, out] -> dx [t, in], or the gradient of what an activation made x of
  Tensor input_grad(const OutputGrad& dy, const BackThrough& through = {}) const;
  /// The same as parts of sums over ranks, in f32 and by so many slabs: y [t, out], and dx [boxes t, in], one
  /// sum for each box that the rank holds of the weight (queries are one, keys and values another), since
  /// boxes of one rank are not neighbours elsewhere.
  Tensor forward_in_slabs(const Tensor& x, int slabs) const;
  Tensor input_grad_in_slabs(const Tensor& dy, int slabs) const;
  /// dW += dy^T x and db += sum of dy, now or when the debt is paid.
  void owe_weight_grads(Debts& debts, OutputGrad dy, const Tensor& x);
  /// What the reader of y must add; empty where there is nothing to add.
  Tensor bias_for_reader() const;
  void each_parameter(const VisitParameter& visit);
  Parameter& weight() { return weight_; }
  bool in_eight_bits() const { return weight_.fp8.on(); }

 private:
  bool weight_grad_in_eight_bits() const { return weight_.fp8.on() && weight_.fp8.rules.weight_grads; }
  void owe_in_eight_bits(Debts& debts, OutputGrad dy, const Tensor& x);
  /// Rows that one sum goes over, `some` of every group.
  struct Box {
    std::int64_t groups;
    Share some;
  };
  std::vector<Box> boxes() const;
  Parameter weight_;
  std::optional<Parameter> bias_;
  BiasAdded added_;
  TokenCut context_;
  KeyRows keys_;
};

/// How activations lie between cut layers: whole on every rank, or cut along the sequence; or they come and
/// go as the layer around has it, which brings sequences together and adds terms.
enum class Between : std::uint8_t { whole, sequence_cut, as_around };

/// The circle a layer is cut over.
struct TensorParallel {
  Communicator& circle;
  Between between = Between::whole;
  SumRules sums = {};
  int rank() const { return circle.rank(); }
  int size() const { return circle.size(); }
  bool sequence_cut() const { return between == Between::sequence_cut && circle.size() > 1; }
  /// Of a contraction that is cut over the circle, those of this rank.
  int slabs() const { return sums.slabs(size()); }
};

/// W is cut along out: every rank reads all of x and makes its own columns of y.
class ColumnLinear {
 public:
  ColumnLinear(Product product, TensorParallel tp) : product_(std::move(product)), tp_(tp) {}
  /// x [s (/tp), b, in] -> y [s, b, out/tp]
  Tensor forward(const Tensor& x) const;
  /// The same, and an activation of it, where this can be one walk over memory.
  ops::Activated forward_activated(const Tensor& x, Activation f) const;
  bool can_activate() const { return !product_.in_eight_bits() && !tp_.sums.in_slabs(); }
  /// dy [s, b, out/tp] -> dx [s (/tp), b, in]; x as forward read it
  Tensor backward(Pass& pass, const Tensor& dy, const Tensor& x);
  Tensor bias_for_reader() const { return product_.bias_for_reader(); }
  void each_parameter(const VisitParameter& visit) { product_.each_parameter(visit); }

 private:
  Tensor backward_in_slabs(Pass& pass, const Tensor& dy, const Tensor& x);
  Product product_;
  TensorParallel tp_;
};

/// W is cut along in: every rank reads its own columns of x and makes a part of all of y.
class RowLinear {
 public:
  RowLinear(Product product, TensorParallel tp) : product_(std::move(product)), tp_(tp) {}
  /// x [s, b, in/tp] -> y [s (/tp), b, out]
  Tensor forward(const Tensor& x) const;
  /// dy [s (/tp), b, out] -> dx [s, b, in/tp], or the gradient of what an activation made x of
  Tensor backward(Pass& pass, const Tensor& dy, const Tensor& x, const BackThrough& through = {});
  bool can_go_back_through() const { return !product_.in_eight_bits() && !tp_.sums.in_slabs(); }
  Tensor bias_for_reader() const { return product_.bias_for_reader(); }
  void each_parameter(const VisitParameter& visit) { product_.each_parameter(visit); }

 private:
  Product product_;
  TensorParallel tp_;
};

}  // namespace weft
