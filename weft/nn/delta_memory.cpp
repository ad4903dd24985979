// Every part of a head lies where the product or the filter left it, and is read through strides; gradients
// are written to the same places.
#include "weft/nn/delta_memory.h"

#include <cmath>

#include "weft/nn/earlier.h"
#include "weft/ops/activation.h"
#include "weft/ops/delta.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/norm.h"

namespace weft {
namespace {

/// Added to the squared length of a query and a key, as the rule's authors do.
constexpr double length_epsilon = 1e-6;

}  // namespace

DeltaMemory::Made DeltaMemory::windows(const Tensor& made) const {
  const std::int64_t values = shape_.values(), filtered = shape_.filtered(), each = shape_.per_key;
  return {made.slice(3, 0, filtered), made.slice(3, filtered, values).split(3, {each, shape_.value}),
          made.slice(3, filtered + values, each), made.slice(3, filtered + values + each, each)};
}

Tensor DeltaMemory::queries_and_keys(const Tensor& filtered) const {
  return filtered.slice(3, 0, 2 * shape_.channels).split(3, {2, shape_.channels});
}

Tensor DeltaMemory::values(const Tensor& filtered) const {
  return filtered.slice(3, 2 * shape_.channels, shape_.values()).split(3, {shape_.per_key, shape_.value});
}

// x / sqrt(sum of x^2 + epsilon) is an RMS norm whose gain is 1 / sqrt(channels).
NormArgs DeltaMemory::lengths() const {
  return {.kind = NormKind::rms, .epsilon = float(length_epsilon / double(shape_.channels))};
}

DeltaIn DeltaMemory::rule(const Saved& saved) const {
  const Made made = windows(saved.made);
  const auto weights = [&](const Parameter& p) {
    return ops::cast(parts_.heads.rows(p.value), Dtype::f32).view({shape_.keys, shape_.per_key});
  };
  return {.q = saved.units.at(3, 0),
          .k = saved.units.at(3, 1),
          .v = values(saved.filtered),
          .decay = made.decays,
          .rate = made.rates,
          .speed = weights(parts_.speed),
          .shift = weights(parts_.shift),
          .scale = float(1 / std::sqrt(double(shape_.channels)))};
}

Tensor DeltaMemory::open(const Saved& saved) const {
  return ops::activation(windows(saved.made).gates, {}, Activation::silu);
}

Tensor DeltaMemory::forward(Pass& pass, const Tensor& x, const Flow&) {
  Saved saved;
  saved.made = parts_.heads.whole(parts_.in.forward(x), shape_.width());
  saved.filtered =
      filter_on(pass, layer_, windows(saved.made).to_filter, {parts_.heads.rows(parts_.filter.value)});
  const Tensor raw = queries_and_keys(saved.filtered);
  saved.units = empty(raw.device(), raw.shape(), raw.dtype());
  saved.lengths = {{}, empty(raw.device(), {raw.dim(0), raw.dim(1), raw.dim(2), raw.dim(3)})};
  ops::norm_into({saved.units, saved.lengths}, raw, {parts_.unit, {}}, lengths());
  saved.o = remember_on(pass, layer_, rule(saved));
  pass.see("delta rule", layer_, saved.o);
  const Norm::Out normed = parts_.norm.forward(saved.o);
  saved.stats = normed.stats;
  ops::multiply_into(normed.y, normed.y, open(saved));
  const Tensor y = parts_.heads.steps(normed.y);
  if (parts_.heads.traded()) saved.said = y;
  pass.save(std::move(saved));
  return parts_.project.forward(y);
}

// dfiltered [s, b, keys, filtered], of what rule and norm of length read
Tensor DeltaMemory::rule_backward(const Saved& saved, const Tensor& d_o, const Made& dmade) {
  const Tensor dfiltered = empty_like(saved.filtered), dunits = queries_and_keys(dfiltered);
  const auto sums = [&](Parameter& p) {
    return parts_.heads.rows(p.grad.sum()).view({shape_.keys, shape_.per_key});
  };
  ops::delta_rule_backward_into({dunits.at(3, 0), dunits.at(3, 1), values(dfiltered), dmade.decays,
                                 dmade.rates, sums(parts_.speed), sums(parts_.shift)},
                                d_o, rule(saved));
  parts_.speed.grad.added();
  parts_.shift.grad.added();
  ops::norm_backward_into({dunits, {}, {}}, dunits, {},
                          {queries_and_keys(saved.filtered), saved.lengths, parts_.unit}, lengths());
  return dfiltered;
}

Tensor DeltaMemory::backward(Pass& pass, const Tensor& dy, const Tensor& x, Flow&) {
  const Saved saved = pass.take<Saved>();
  const Tensor dmade = empty_like(saved.made), normed = parts_.norm.again(saved.o);
  const Made made = windows(saved.made), into = windows(dmade);
  const Tensor open = this->open(saved),
               y = parts_.heads.traded() ? saved.said : parts_.heads.steps(ops::multiply(open, normed));
  const Tensor dsaid = parts_.project.backward(pass, dy, y);
  const Tensor dgated = parts_.heads.whole(dsaid, shape_.values()).view(saved.o.shape());
  ops::multiply_into(normed, normed, dgated);
  ops::activation_backward_into(into.gates, normed, made.gates, {}, Activation::silu);
  const Tensor& d_o = open;
  ops::multiply_into(d_o, open, dgated);
  (void)parts_.norm.backward(d_o, {}, saved.o, saved.stats);
  const Tensor dfiltered = rule_backward(saved, d_o, into);
  ops::convolve_backward_into({into.to_filter, parts_.heads.rows(parts_.filter.grad.sum())}, dfiltered,
                              made.to_filter, {parts_.heads.rows(parts_.filter.value)});
  parts_.filter.grad.added();
  return parts_.in.backward(pass, parts_.heads.steps(dmade), x);
}

void DeltaMemory::each_parameter(const VisitParameter& visit) {
  parts_.in.each_parameter(visit);
  visit(parts_.filter);
  visit(parts_.speed);
  visit(parts_.shift);
  parts_.norm.each_parameter(visit);
  parts_.project.each_parameter(visit);
}

}  // namespace weft
