// The residual stream is walked as seldom as its arithmetic allows: bias, dropout, sum and the next norm are
// one pass.
#include "weft/nn/block.h"

#include <utility>

#include "weft/base/number.h"
#include "weft/nn/layer_weight.h"
#include "weft/ops/elementwise.h"
#include "weft/tensor/named.h"

namespace weft {
namespace {

/// x itself where that is the same.
Tensor times(const Tensor& x, float weight) {
  if (weight == 1 || !x) return x;
  const Tensor y = empty(x.device(), x.shape(), x.dtype());
  ops::copy_into(y, x);
  ops::scale_in_place(y, weight);
  return y;
}

}  // namespace

DropoutArgs hidden_dropout(const Pass& pass, const HiddenRows& rows, const Address& at) {
  Tensor places = pass.batch().of(rows.side).places;
  if (rows.tp.sequence_cut()) {
    const std::int64_t part = exact(places.dim(0), rows.tp.size());
    places = places.slice(0, rows.tp.rank() * part, part);
  }
  return {.at = at, .samples = pass.batch().samples, .positions = places, .width = rows.width};
}

DropoutArgs Block::dropout(const Pass& pass, std::size_t sublayer, std::int64_t width) const {
  if (!pass.training() || options_.dropout == 0) return {};
  const int place = options_.first_dropout + int(sublayer);
  DropoutArgs args =
      hidden_dropout(pass, {options_.tp, options_.side, width}, pass.address(Purpose::dropout_hidden, place));
  args.probability = options_.dropout;
  return args;
}

float Block::weight(const Pass& pass) const {
  return options_.multiplier * layer_weight(pass, options_.drop, options_.place);
}

Norm::Out Block::read_by(const Sublayer& sublayer, const Tensor& x) const {
  if (sublayer.norm) return sublayer.norm->forward(x);
  if (sublayer.inner->adds_residual_grad()) return {x, {}};  // its norms read the stream
  return {ops::cast(x, options_.inner.value_or(x.dtype())), {}};
}

Flow Block::left_out(Pass& pass, const Flow& in) const {
  if (options_.residual == Residual::of_input) return in;
  Flow out = in;
  for (const Sublayer& here : sublayers_) {
    const Tensor normed = empty_like(out.hidden);
    const NormStats stats = here.norm->forward_into(normed, out.hidden);
    pass.save(Saved{out.hidden, {}, stats});
    out.hidden = normed;
  }
  return out;
}

Flow Block::left_out_backward(Pass& pass, const Flow& dout) {
  if (options_.residual == Residual::of_input) return dout;
  Flow d = dout;
  d.rounded = {};
  for (std::size_t i = sublayers_.size(); i-- > 0;) {
    const Saved saved = pass.take<Saved>();
    d.hidden = sublayers_[i].norm->backward(d.hidden, {}, saved.x, saved.stats);
  }
  return d;
}

Flow Block::forward(Pass& pass, const Flow& in) {
  const float weight = this->weight(pass);
  if (weight == 0) return left_out(pass, in);
  Flow out = in;
  Tensor& x = out.hidden;
  Norm::Out normed = read_by(sublayers_.front(), x);
  for (std::size_t i = 0; i < sublayers_.size(); ++i) {
    const Sublayer& here = sublayers_[i];
    const Named named(x.device(), here.name, options_.layer);
    const Tensor y = here.inner->forward(pass, normed.y, in);
    pass.save(Saved{here.norm ? x : normed.y, keeps_normed(here) ? normed.y : Tensor(), normed.stats});
    if (weight != 1) ops::scale_in_place(y, weight);
    const Tensor bias = times(here.inner->bias_for_reader(), weight);
    const DropoutArgs args = dropout(pass, i, x.dim(2));
    const Tensor residual = options_.residual == Residual::of_norm ? normed.y : x;
    const Dtype sum = options_.inner ? Dtype::f32 : y.dtype();
    const bool last = i + 1 == sublayers_.size();
    if (!last && sublayers_[i + 1].norm) {
      const SumNormOut next = sublayers_[i + 1].norm->forward_sum({y, bias, residual, args}, sum);
      normed = {next.y, next.stats};
      x = next.sum;
    } else {
      const Tensor to = y.dtype() == sum ? y : empty(y.device(), y.shape(), sum);
      ops::bias_dropout_add_into(to, y, bias, residual, args);
      x = to;
      if (!last) normed = read_by(sublayers_[i + 1], x);
    }
    pass.see(here.name, options_.layer, x);
  }
  return out;
}

/// The gradient of what a sublayer gave, in the type that it gave it in.
Tensor Block::given_to(const Flow& d, const DropoutArgs& dropped, float weight) const {
  const Tensor& dx = d.hidden;
  const Dtype type = options_.inner.value_or(dx.dtype());
  if (dropped.probability == 0) return times(d.rounded ? d.rounded : ops::cast(dx, type), weight);
  const Tensor dy = empty(dx.device(), dx.shape(), type);
  ops::dropout_into(dy, dx, dropped);
  return times(dy, weight);
}

// What was added to has the whole gradient of the sum, and that of the norm, or of what was read without one.
// In f32 it stays where it is, and the sublayer before finds it rounded where no dropout of its own does
// that.
void Block::through(const Sublayer& sublayer, const Norm::Read& read, const Tensor& dnormed, Flow& d) const {
  const Tensor dsum = std::exchange(d.hidden, {});
  d.rounded = {};
  if (sublayer.inner->adds_residual_grad()) {
    d.hidden = dnormed;
    return;
  }
  const bool beside_norm = sublayer.norm && options_.residual == Residual::of_input;
  if (!sublayer.norm) {
    d.hidden = read.x.dtype() == dsum.dtype() ? dnormed : dsum;
    return ops::add_into(d.hidden, dnormed, dsum);
  }
  if (!beside_norm) ops::add_into(dnormed, dnormed, dsum);
  const Norm::Slopes slopes = sublayer.norm->backward_and_rounded(dnormed, beside_norm ? dsum : Tensor(),
                                                                  read, options_.dropout == 0);
  d.hidden = slopes.dx;
  d.rounded = slopes.rounded;
}

Flow Block::backward(Pass& pass, const Flow& dout) {
  const float weight = this->weight(pass);
  if (weight == 0) return left_out_backward(pass, dout);
  Flow d = dout;
  for (std::size_t i = sublayers_.size(); i-- > 0;) {
    Sublayer& here = sublayers_[i];
    const Named named(d.hidden.device(), here.name, options_.layer);
    const Saved saved = pass.take<Saved>();
    const Tensor dy = given_to(d, dropout(pass, i, d.hidden.dim(2)), weight);
    const Tensor normed = saved.normed ? saved.normed : here.norm ? here.norm->again(saved.x) : saved.x;
    through(here, {saved.x, saved.stats}, here.inner->backward(pass, dy, normed, d), d);
  }
  return d;
}

void Block::each_parameter(const VisitParameter& visit) {
  for (Sublayer& sublayer : sublayers_) {
    if (sublayer.norm) sublayer.norm->each_parameter(visit);
    sublayer.inner->each_parameter(visit);
  }
}

void Block::each_router(const VisitRouter& visit) {
  for (Sublayer& sublayer : sublayers_) sublayer.inner->each_router(visit);
}

}  // namespace weft
