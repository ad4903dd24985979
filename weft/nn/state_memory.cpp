// Every part of a group lies where the product or the filter left it, and is read through strides; gradients
// are written to the same places.
#include "weft/nn/state_memory.h"

#include "weft/nn/earlier.h"
#include "weft/ops/activation.h"
#include "weft/ops/delta.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/norm.h"

namespace weft {

StateMemory::Made StateMemory::windows(const Tensor& made) const {
  const std::int64_t values = shape_.values(), filtered = shape_.filtered(), each = shape_.per_key;
  return {made.slice(3, 0, filtered), made.slice(3, filtered, values).split(3, {each, shape_.value}),
          made.slice(3, filtered + values, each)};
}

StateMemory::Filtered StateMemory::windows_of_filtered(const Tensor& filtered) const {
  const std::int64_t channels = shape_.channels;
  return {filtered.slice(3, 0, channels), filtered.slice(3, channels, channels),
          filtered.slice(3, 2 * channels, shape_.values()).split(3, {shape_.per_key, shape_.value})};
}

DeltaIn StateMemory::space(const Saved& saved) const {
  const Filtered filtered = windows_of_filtered(saved.filtered);
  const auto weights = [&](const Parameter& p) {
    return ops::cast(parts_.heads.rows(p.value), Dtype::f32).view({shape_.keys, shape_.per_key});
  };
  return {.q = filtered.q,
          .k = filtered.k,
          .v = filtered.v,
          .decay = windows(saved.made).times,
          .speed = weights(parts_.speed),
          .shift = weights(parts_.shift),
          .skip = weights(parts_.skip)};
}

Filters StateMemory::filters() const {
  return {parts_.heads.rows(parts_.filter.value),
          parts_.heads.rows(parts_.filter_bias.value).view({shape_.keys, shape_.filtered()})};
}

Tensor StateMemory::gates(const Saved& saved) const {
  return ops::activation(windows(saved.made).gates, {}, Activation::silu);
}

// Every group has a gain of its own.
Tensor StateMemory::normed(const Tensor& x, const Tensor& rstd) const {
  const Tensor y = empty_like(x), gains = parts_.heads.rows(parts_.gain.value);
  for (std::int64_t key = 0; key < shape_.keys; ++key) {
    const Tensor gain = gains.slice(0, key * shape_.values(), shape_.values());
    ops::norm_into({y.at(2, key), {{}, rstd.at(0, key)}}, x.at(2, key), {gain, {}}, parts_.norm);
  }
  return y;
}

void StateMemory::norm_backward(const Tensor& dy, const Tensor& x, const Tensor& rstd) {
  const Tensor gains = parts_.heads.rows(parts_.gain.value), sums = parts_.heads.rows(parts_.gain.grad.sum());
  for (std::int64_t key = 0; key < shape_.keys; ++key) {
    const auto of_key = [&](const Tensor& all) {
      return all.slice(0, key * shape_.values(), shape_.values());
    };
    const Tensor here = dy.at(2, key);
    ops::norm_backward_into({here, of_key(sums), {}}, here, {},
                            {x.at(2, key), {{}, rstd.at(0, key)}, of_key(gains)}, parts_.norm);
  }
  parts_.gain.grad.added();
}

Tensor StateMemory::forward(Pass& pass, const Tensor& x, const Flow&) {
  Saved saved;
  saved.made = parts_.heads.whole(parts_.in.forward(x), shape_.width());
  saved.filtered = filter_on(pass, layer_, windows(saved.made).to_filter, filters());
  saved.o = remember_on(pass, layer_, space(saved));
  pass.see("state space", layer_, saved.o);
  const Tensor gated = gates(saved);
  ops::multiply_into(gated, gated, saved.o);
  const Shape groups{gated.dim(0), gated.dim(1), shape_.keys, shape_.values()};
  saved.rstd = empty(gated.device(), {shape_.keys, gated.dim(0), gated.dim(1)});
  const Tensor y = parts_.heads.steps(normed(gated.view(groups), saved.rstd));
  if (parts_.heads.traded()) saved.said = y;
  pass.save(std::move(saved));
  return parts_.project.forward(y);
}

Tensor StateMemory::space_backward(const Saved& saved, const Tensor& d_o, const Tensor& dtimes) {
  const Tensor dfiltered = empty_like(saved.filtered);
  const Filtered into = windows_of_filtered(dfiltered);
  const auto sums = [&](Parameter& p) {
    return parts_.heads.rows(p.grad.sum()).view({shape_.keys, shape_.per_key});
  };
  ops::delta_rule_backward_into({.dq = into.q,
                                 .dk = into.k,
                                 .dv = into.v,
                                 .ddecay = dtimes,
                                 .drate = {},
                                 .dspeed = sums(parts_.speed),
                                 .dshift = sums(parts_.shift),
                                 .dskip = sums(parts_.skip)},
                                d_o, space(saved));
  for (Parameter* each : {&parts_.speed, &parts_.shift, &parts_.skip}) each->grad.added();
  return dfiltered;
}

void StateMemory::filter_backward(const Tensor& dmade, const Tensor& dfiltered, const Tensor& made) {
  const Tensor dbias =
      parts_.heads.rows(parts_.filter_bias.grad.sum()).view({shape_.keys, shape_.filtered()});
  ops::convolve_backward_into({windows(dmade).to_filter, parts_.heads.rows(parts_.filter.grad.sum()), dbias},
                              dfiltered, windows(made).to_filter, filters());
  parts_.filter.grad.added();
  parts_.filter_bias.grad.added();
}

Tensor StateMemory::backward(Pass& pass, const Tensor& dy, const Tensor& x, Flow&) {
  const Saved saved = pass.take<Saved>();
  const Tensor open = gates(saved), gated = ops::multiply(open, saved.o);
  const Tensor read = gated.view({gated.dim(0), gated.dim(1), shape_.keys, shape_.values()});
  const Tensor y = parts_.heads.traded() ? saved.said : parts_.heads.steps(normed(read, saved.rstd));
  const Tensor dgated = parts_.heads.whole(parts_.project.backward(pass, dy, y), shape_.values());
  norm_backward(dgated, read, saved.rstd);
  const Tensor dmade = empty_like(saved.made), by_head = dgated.view(gated.shape());
  const Tensor& d_o = open;
  const Made into = windows(dmade);
  ops::multiply_into(d_o, open, by_head);
  ops::multiply_into(gated, by_head, saved.o);
  ops::activation_backward_into(into.gates, gated, windows(saved.made).gates, {}, Activation::silu);
  const Tensor dfiltered = space_backward(saved, d_o, into.times);
  filter_backward(dmade, dfiltered, saved.made);
  return parts_.in.backward(pass, parts_.heads.steps(dmade), x);
}

void StateMemory::each_parameter(const VisitParameter& visit) {
  parts_.in.each_parameter(visit);
  for (Parameter* each :
       {&parts_.filter, &parts_.filter_bias, &parts_.speed, &parts_.shift, &parts_.skip, &parts_.gain})
    visit(*each);
  parts_.project.each_parameter(visit);
}

}  // namespace weft
