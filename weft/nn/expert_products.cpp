// What experts hold is read as one tensor: every product is one call, however many experts there are. Where
// ranks may cut a contraction and bits must not show it, experts are multiplied one after the other, by
// slabs.
#include "weft/nn/expert_products.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/number.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/matmul.h"
#include "weft/ops/norm.h"

namespace weft {
namespace {

/// What `of` says of every parameter, as matrices [count, rows, columns].
template <class Of>
Tensor stacked(const std::vector<Parameter>& parameters, const Of& of) {
  const auto matrix = [](const Tensor& t) { return t.rank() == 1 ? t.view({1, t.dim(0)}) : t; };
  const Tensor first = of(parameters.front());
  const std::int64_t step = parameters.size() > 1 ? of(parameters[1]).offset() - first.offset() : 0;
  for (std::size_t i = 1; i < parameters.size(); ++i) {
    const Tensor here = of(parameters[i]);
    if (here.storage() != first.storage() || here.offset() != first.offset() + std::int64_t(i) * step)
      fail(Kind::internal, parameters[i].name, " does not lie behind ", parameters[i - 1].name, " in memory");
  }
  return matrix(first).row_of(std::ssize(parameters), step);
}

Tensor values(const std::vector<Parameter>& parameters) {
  return stacked(parameters, [](const Parameter& p) { return p.value; });
}

/// Where a product of all of them is written.
GradPlace place_of(const std::vector<Parameter>& parameters) {
  const bool first =
      std::ranges::all_of(parameters, [](const Parameter& p) { return p.grad.holds_nothing(); });
  const auto sum = [first](const Parameter& p) { return first ? p.grad.place().sum : p.grad.sum(); };
  return {stacked(parameters, sum), !first};
}

Tensor of(const Tensor& rows, const Share& here) { return rows.slice(0, here.from, here.count); }

/// visit(expert, its rows): an expert without any multiplies nothing.
template <class Visit>
void for_each_with_rows(const RowGroups& rows, const Visit& visit) {
  for (int e = 0; e < rows.count; ++e)
    if (const Share here = rows.of(e); here.count > 0) visit(e, here);
}

Tensor column(const Tensor& factors, Dtype dtype) {
  return ops::cast(factors, dtype).view({factors.elements(), 1});
}

/// A product in groups whose contraction is cut: a [n, k], b [count, m, k] to be read transposed, or
/// [count, k, m].
struct InSlabs {
  Tensor a, b;
  Groups groups;
  Read read;
  int slabs;

  Share all() const { return {0, slabs}; }
};

/// out f32 = the sum of some slabs, in the tree that a product by itself has of them: a product each, of
/// which two neighbours are one sum.
void add_slabs_into(const Tensor& out, const InSlabs& of, const Share& some) {
  if (some.count > 2) {
    const std::int64_t half = some.count / 2;
    add_slabs_into(out, of, {some.from, half});
    const Tensor more = empty(out.device(), out.shape());
    add_slabs_into(more, of, {some.from + half, half});
    return ops::add_into(out, out, more);
  }
  const std::int64_t deep = exact(of.a.dim(1), std::int64_t{of.slabs});
  for (std::int64_t i = some.from; i < some.from + some.count; ++i)
    ops::grouped_matmul_into(out, of.a.slice(1, i * deep, deep),
                             of.b.slice(of.read == Read::transposed ? 2 : 1, i * deep, deep), of.groups,
                             {.b = of.read, .accumulate = i > some.from});
}

}  // namespace

bool ExpertProducts::take_unseen_groups(const Tensor& x) const {
  return !in_eight_bits() && x.device().kernels().multiplies_unseen_groups(x.dtype());
}

Tensor ExpertProducts::forward(const Tensor& x, const RowGroups& rows) const {
  if (in_eight_bits()) {
    Tensor y = empty(x.device(), {x.dim(0), weights_.front().shape[0]}, x.dtype());
    for_each_with_rows(rows, [&](int e, const Share& here) {
      const Tensor bias = biased() ? biases_[std::size_t(e)].value : Tensor();
      fp8_product_into(fp8(), of(y, here), of(x, here), weights_[std::size_t(e)].value, bias);
    });
    return y;
  }
  const Tensor w = values(weights_);
  const Tensor bias = biased() ? values(biases_).at(1, 0) : Tensor();
  return ops::grouped_matmul(x, w, rows.groups(), {.b = Read::transposed, .bias = bias});
}

Tensor ExpertProducts::forward_terms(const Tensor& x, const Tensor& factors, const RowGroups& rows) const {
  Tensor y;
  if (in_eight_bits()) {
    y = empty(x.device(), {x.dim(0), weights_.front().shape[0]}, x.dtype());
    for_each_with_rows(rows, [&](int e, const Share& here) {
      fp8_product_into(fp8(), of(y, here), of(x, here), weights_[std::size_t(e)].value, {});
    });
  } else if (!sums_.sums.in_slabs()) {
    y = ops::grouped_matmul(x, values(weights_), rows.groups(), {.b = Read::transposed});
  } else if (rows.unseen) {
    y = empty(x.device(), {x.dim(0), weights_.front().shape[0]});
    const InSlabs of{x, values(weights_), rows.groups(), Read::transposed, sums_.slabs()};
    add_slabs_into(y, of, of.all());
  } else {
    y = empty(x.device(), {x.dim(0), weights_.front().shape[0]});
    for (int e = 0; e < rows.count; ++e) {
      const auto [from, count] = rows.of(e);
      ops::matmul_into(y.slice(0, from, count), x.slice(0, from, count), weights_[std::size_t(e)].value,
                       {.b = Read::transposed, .slabs = sums_.slabs()});
    }
  }
  if (biased())
    ops::grouped_matmul_into(y, column(factors, y.dtype()), ops::cast(values(biases_), y.dtype()),
                             rows.groups(), {.accumulate = true});
  return y;
}

Tensor ExpertProducts::input_grad(const Tensor& dy, const RowGroups& rows) const {
  if (in_eight_bits()) {
    Tensor dx = empty(dy.device(), {dy.dim(0), weights_.front().shape[1]}, dy.dtype());
    for_each_with_rows(rows, [&](int e, const Share& here) {
      fp8_input_grad_into(fp8(), of(dx, here), fp8_grad(fp8(), of(dy, here), Fp8Back::input),
                          weights_[std::size_t(e)].value);
    });
    return dx;
  }
  return ops::grouped_matmul(dy, values(weights_), rows.groups());
}

Tensor ExpertProducts::input_grad_terms(const Tensor& dy, const RowGroups& rows) const {
  if (!sums_.sums.in_slabs()) return input_grad(dy, rows);
  const std::int64_t in = weights_.front().shape[1], box = exact(dy.dim(1), std::int64_t{sums_.boxes});
  Tensor dx = empty(dy.device(), {dy.dim(0), sums_.boxes * in});
  if (rows.unseen) {
    const Tensor w = values(weights_);
    for (int i = 0; i < sums_.boxes; ++i) {
      const InSlabs of{dy.slice(1, i * box, box), w.slice(1, i * box, box), rows.groups(), Read::as_is,
                       sums_.slabs()};
      add_slabs_into(dx.slice(1, i * in, in), of, of.all());
    }
    return dx;
  }
  for (int e = 0; e < rows.count; ++e) {
    const auto [from, count] = rows.of(e);
    for (int i = 0; i < sums_.boxes; ++i)
      ops::matmul_into(dx.slice(0, from, count).slice(1, i * in, in),
                       dy.slice(0, from, count).slice(1, i * box, box),
                       weights_[std::size_t(e)].value.slice(0, i * box, box), {.slabs = sums_.slabs()});
  }
  return dx;
}

Tensor ExpertProducts::factor_grad(const Tensor& dy, const RowGroups& rows) const {
  Tensor out = empty(dy.device(), {dy.dim(0), 1});
  ops::grouped_matmul_into(out, dy, values(biases_), rows.groups(), {.b = Read::transposed});
  return out.view({dy.dim(0)});
}

Tensor ExpertProducts::dot_terms(const Tensor& a, const Tensor& b) const {
  const int slabs = sums_.slabs();
  const std::int64_t width = exact(a.dim(1), std::int64_t{slabs});
  if (slabs == 1) return ops::dot_rows(a, b);
  const Tensor parts = empty(a.device(), {slabs, a.dim(0)});
  for (int i = 0; i < slabs; ++i)
    ops::copy_into(parts.at(0, i), ops::dot_rows(a.slice(1, i * width, width), b.slice(1, i * width, width)));
  return added_as_tree(parts);
}

void ExpertProducts::add_grads(const Tensor& dy, const Tensor& x, const Tensor& factors,
                               const RowGroups& rows, const RowGroups& sequences) {
  const bool biases = biased() && biases_.front().grad.wanted();
  const Tensor weighed = biases && factors ? ops::scale_rows(dy, factors) : dy;
  // Groups that the host has not seen are one sequence's: where several meet, rows have travelled.
  if (sums_.sums.whole_sequences() && !rows.unseen) return add_by_sequence(dy, x, weighed, sequences);
  if (in_eight_bits() && !fp8().rules.weight_grads) fp8_meet_input(fp8(), x);
  if (weights_.front().grad.wanted()) add_weight_grads(dy, x, rows);
  if (biases) add_bias_grads(weighed, rows);
  added();
}

void ExpertProducts::add_weight_grads(const Tensor& dy, const Tensor& x, const RowGroups& rows) const {
  if (!in_eight_bits() || !fp8().rules.weight_grads) {
    const GradPlace dw = place_of(weights_);
    return ops::grouped_matmul_into(dw.sum, dy, x, rows.groups(),
                                    {.a = Read::transposed, .accumulate = dw.on_top});
  }
  for (const Parameter& weight : weights_) weight.grad.make_room();  // of all before any is told of
  for_each_with_rows(rows, [&](int e, const Share& here) {
    fp8_weight_grad_into(fp8(), weights_[std::size_t(e)].grad.place(),
                         fp8_grad(fp8(), of(dy, here), Fp8Back::weight), of(x, here));
  });
}

// What only the device knows the groups of is summed as a product with ones, which are one and the same: so a
// device knows it for a sum, and adds in the order of sum_rows.
void ExpertProducts::add_bias_grads(const Tensor& dy, const RowGroups& rows) const {
  if (rows.unseen) {
    const Tensor one = empty(dy.device(), {1}, dy.dtype());
    ops::fill(one, 1);
    const Tensor ones = one.row_of(dy.dim(0), 0);
    const GradPlace sums = place_of(biases_);
    return ops::grouped_matmul_into(sums.sum, ones, dy, rows.groups(),
                                    {.a = Read::transposed, .accumulate = sums.on_top});
  }
  for (int e = 0; e < rows.count; ++e) {
    const auto [from, count] = rows.of(e);
    ops::sum_rows_into(biases_[std::size_t(e)].grad.sum(), dy.slice(0, from, count));
  }
}

// Every sequence is a leaf of each expert's tree, whether it has rows for it or not.
void ExpertProducts::add_by_sequence(const Tensor& dy, const Tensor& x, const Tensor& weighed,
                                     const RowGroups& sequences) const {
  const int each = sequences.count / int(weights_.size());
  const std::int64_t out = dy.dim(1), first = out * sums_.copy / sums_.copies;
  const Share mine{first, out * (sums_.copy + 1) / sums_.copies - first};
  for (int s = 0; s < each; ++s) {
    for (std::size_t e = 0; e < weights_.size(); ++e) {
      const auto [from, count] = sequences.of(int(e) * each + s);
      if (weights_[e].grad.wanted()) {
        const GradPlace dw = weights_[e].grad.place(mine.from, mine.count);
        ops::matmul_into(dw.sum, dy.slice(0, from, count).slice(1, mine.from, mine.count),
                         x.slice(0, from, count), {.a = Read::transposed, .accumulate = dw.on_top});
      }
      if (biased() && biases_[e].grad.wanted())
        ops::sum_rows_into(biases_[e].grad.sum().slice(0, mine.from, mine.count),
                           weighed.slice(0, from, count).slice(1, mine.from, mine.count));
    }
    added();
  }
}

void ExpertProducts::added() const {
  for (const auto* some : {&weights_, &biases_})
    for (const Parameter& p : *some)
      if (p.grad.wanted()) p.grad.added();
}

void ExpertProducts::each_parameter(const VisitParameter& visit) {
  for (Parameter& weight : weights_) visit(weight);
  for (Parameter& bias : biases_) visit(bias);
}

}  // namespace weft
