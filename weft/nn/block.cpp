// The residual stream is walked as seldom as its arithmetic allows: bias, dropout, sum and the next norm are
// one pass.
#include "weft/nn/block.h"

#include "weft/base/number.h"
#include "weft/nn/layer_weight.h"
#include "weft/ops/elementwise.h"
#include "weft/tensor/named.h"

namespace weft {
namespace {

Norm::Out normed_for(const Sublayer& sublayer, const Tensor& x) {
  return sublayer.norm ? sublayer.norm->forward(x) : Norm::Out{x, {}};
}

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

Flow Block::left_out(Pass& pass, const Flow& in) const {
  if (options_.residual == Residual::of_input) return in;
  Flow out = in;
  for (const Sublayer& here : sublayers_) {
    const Norm::Out normed = here.norm->forward(out.hidden);
    pass.save(Saved{out.hidden, {}, normed.stats});
    out.hidden = normed.y;
  }
  return out;
}

Flow Block::left_out_backward(Pass& pass, const Flow& dout) {
  if (options_.residual == Residual::of_input) return dout;
  Flow d = dout;
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
  Norm::Out normed = normed_for(sublayers_.front(), x);
  for (std::size_t i = 0; i < sublayers_.size(); ++i) {
    const Sublayer& here = sublayers_[i];
    const Named named(x.device(), here.name, options_.layer);
    const Tensor y = here.inner->forward(pass, normed.y, in);
    pass.save(Saved{x, keeps_normed(here) ? normed.y : Tensor(), normed.stats});
    if (weight != 1) ops::scale_in_place(y, weight);
    const Tensor bias = times(here.inner->bias_for_reader(), weight);
    const DropoutArgs args = dropout(pass, i, x.dim(2));
    const Tensor residual = options_.residual == Residual::of_norm ? normed.y : x;
    const bool last = i + 1 == sublayers_.size();
    if (!last && sublayers_[i + 1].norm) {
      const SumNormOut next = sublayers_[i + 1].norm->forward_sum({y, bias, residual, args});
      normed = {next.y, next.stats};
      x = next.sum;
    } else {
      ops::bias_dropout_add_into(y, y, bias, residual, args);
      x = y;
      if (!last) normed = {x, {}};
    }
    pass.see(here.name, options_.layer, x);
  }
  return out;
}

Flow Block::backward(Pass& pass, const Flow& dout) {
  const float weight = this->weight(pass);
  if (weight == 0) return left_out_backward(pass, dout);
  Flow d = dout;
  for (std::size_t i = sublayers_.size(); i-- > 0;) {
    Sublayer& here = sublayers_[i];
    const Named named(d.hidden.device(), here.name, options_.layer);
    const Saved saved = pass.take<Saved>();
    const DropoutArgs args = dropout(pass, i, d.hidden.dim(2));
    const Tensor dy = times(args.probability == 0 ? d.hidden : ops::dropout(d.hidden, args), weight);
    const Tensor normed = saved.normed ? saved.normed : normed_for(here, saved.x).y;
    const Tensor dnormed = here.inner->backward(pass, dy, normed, d);
    const bool through_norm = here.norm && options_.residual == Residual::of_input;
    if (!through_norm && !here.inner->adds_residual_grad()) ops::add_into(dnormed, dnormed, d.hidden);
    const Tensor residual = through_norm ? d.hidden : Tensor();
    d.hidden = here.norm ? here.norm->backward(dnormed, residual, saved.x, saved.stats) : dnormed;
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
