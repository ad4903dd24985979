#include "weft/ops/delta.h"

#include "weft/ops/count.h"
#include "weft/ops/door.h"

namespace weft::ops {
namespace {

void check_filter(const Door& door, const Tensor& x, const Filters& filters) {
  const auto& [weight, bias] = filters;
  door.floats("x", x).ranked("x", x, 4, 4).dense_rows("x", x);
  door.floats("weight", weight).ranked("weight", weight, 3, 3).contiguous("weight", weight);
  if (weight.dim(0) != x.dim(2) || weight.dim(1) != x.dim(3) || weight.dim(2) == 0)
    door.refuse(Kind::shape, "weight ", weight.shape(), " has no filter for each channel of x ", x.shape());
  if (weight.dim(2) > most_taps)
    door.refuse(Kind::shape, "filters of ", weight.dim(2), " taps, and ", most_taps, " is the most");
  if (bias) door.floats("bias", bias, {x.dim(2), x.dim(3)}).contiguous("bias", bias);
}

void check_heads(const Door& door, const DeltaIn& in) {
  door.floats("v", in.v).ranked("v", in.v, 5, 5).dense_rows("v", in.v);
  door.floats("q", in.q).ranked("q", in.q, 4, 4).dense_rows("q", in.q);
  const Shape& v = in.v.shape();
  door.shaped("q", in.q, {v[0], v[1], v[2], in.q.dim(3)});
  door.floats("k", in.k, in.q.shape()).dense_rows("k", in.k);
  if (in.q.dim(3) > most_delta_channels)
    door.refuse(Kind::shape, "keys of ", in.q.dim(3), " channels, and ", most_delta_channels, " is the most");
  const Shape numbers{v[0], v[1], v[2], v[3]}, weights{v[2], v[3]};
  door.floats("decay", in.decay, numbers);
  if (bool(in.rate) == bool(in.skip))
    door.refuse(Kind::shape, in.rate ? "both" : "neither", " rates, which correct, ", in.rate ? "and" : "nor",
                " skips, which are a state space's");
  if (in.rate)
    door.floats("rate", in.rate, numbers);
  else
    door.holds("skip", in.skip, Dtype::f32, weights).contiguous("skip", in.skip);
  if (in.memory)
    door.holds("memory", in.memory, Dtype::f32, {v[1], v[2], v[3], in.q.dim(3), v[4]})
        .contiguous("memory", in.memory);
  door.holds("speed", in.speed, Dtype::f32, weights).contiguous("speed", in.speed);
  door.holds("shift", in.shift, Dtype::f32, weights).contiguous("shift", in.shift);
}

}  // namespace

Tensor convolve(const Tensor& x, const Filters& filters) {
  check_filter(Door("convolve", x), x, filters);
  const Tensor& weight = filters.weight;
  Tensor y = empty_like(x);
  count::pass(x, Work::elementwise, count::convolve(weight.dim(2)), count::traffic(y, x, weight));
  x.device().kernels().convolve(y, x, filters);
  return y;
}

void convolve_backward_into(const ConvolveGrads& grads, const Tensor& dy, const Tensor& x,
                            const Filters& filters) {
  const Door door("convolve_backward", x);
  check_filter(door, x, filters);
  const auto& [weight, bias] = filters;
  door.floats("dy", dy, x.shape()).dense_rows("dy", dy);
  door.floats("dx", grads.dx, x.shape()).dense_rows("dx", grads.dx);
  door.holds("dweight", grads.dweight, Dtype::f32, weight.shape()).contiguous("dweight", grads.dweight);
  if (bool(grads.dbias) != bool(bias))
    door.refuse(Kind::shape, bias ? "a bias without dbias" : "dbias without a bias");
  if (bias) door.holds("dbias", grads.dbias, Dtype::f32, bias.shape()).contiguous("dbias", grads.dbias);
  count::pass(x, Work::elementwise, 3 * count::convolve(weight.dim(2)),
              count::traffic(grads.dx, dy, x, weight, grads.dweight, grads.dweight));
  x.device().kernels().convolve_backward(grads, dy, x, filters);
}

Tensor delta_rule(const DeltaIn& in) {
  check_heads(Door("delta_rule", in.v), in);
  Tensor o = empty_like(in.v);
  count::delta(in, in.corrects() ? count::delta_products : count::state_products,
               count::traffic(o, in.q, in.k, in.v, in.decay, in.rate, in.memory, in.memory));
  o.device().kernels().delta_rule(o, in);
  return o;
}

void delta_rule_backward_into(const DeltaGrads& grads, const Tensor& dout, const DeltaIn& in) {
  const Door door("delta_rule_backward", in.v);
  check_heads(door, in);
  if (in.memory) door.refuse(Kind::shape, "a memory to begin with, and gradients are of whole sequences");
  door.floats("dout", dout, in.v.shape()).dense_rows("dout", dout);
  door.floats("dq", grads.dq, in.q.shape()).dense_rows("dq", grads.dq);
  door.floats("dk", grads.dk, in.k.shape()).dense_rows("dk", grads.dk);
  door.floats("dv", grads.dv, in.v.shape()).dense_rows("dv", grads.dv);
  door.floats("ddecay", grads.ddecay, in.decay.shape());
  if (in.corrects())
    door.floats("drate", grads.drate, in.rate.shape());
  else
    door.holds("dskip", grads.dskip, Dtype::f32, in.skip.shape()).contiguous("dskip", grads.dskip);
  door.holds("dspeed", grads.dspeed, Dtype::f32, in.speed.shape()).contiguous("dspeed", grads.dspeed);
  door.holds("dshift", grads.dshift, Dtype::f32, in.shift.shape()).contiguous("dshift", grads.dshift);
  count::delta(in, in.corrects() ? count::delta_backward_products : count::state_backward_products,
               count::traffic(grads.dq, grads.dk, grads.dv, grads.ddecay, grads.drate, dout) +
                   count::traffic(in.q, in.k, in.v, in.decay, in.rate));
  in.v.device().kernels().delta_rule_backward(grads, dout, in);
}

}  // namespace weft::ops
