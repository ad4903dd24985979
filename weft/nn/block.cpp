// The residual stream is walked as seldom as its arithmetic allows: bias, dropout, sum and the next norm are
// one pass.
#include "weft/nn/block.h"

#include "weft/base/number.h"
#include "weft/ops/elementwise.h"

namespace weft {

DropoutArgs hidden_dropout(const Pass& pass, const TensorParallel& tp, const Address& at,
                           std::int64_t width) {
  Tensor places = pass.batch().places;
  if (tp.sequence_cut()) {
    const std::int64_t part = exact(places.dim(0), tp.size());
    places = places.slice(0, tp.rank() * part, part);
  }
  return {.at = at, .samples = pass.batch().samples, .positions = places, .width = width};
}

DropoutArgs Block::dropout(const Pass& pass, Half half, std::int64_t width) const {
  if (!pass.training() || options_.dropout == 0) return {};
  const int place = 2 * options_.layer + int(half);
  DropoutArgs args = hidden_dropout(pass, options_.tp, pass.address(Purpose::dropout_hidden, place), width);
  args.probability = options_.dropout;
  return args;
}

Flow Block::forward(Pass& pass, const Flow& in) {
  const Tensor& x = in.hidden;
  const auto [normed1, stats1] = norm1_.forward(x);
  const Tensor attended = attention_.forward(pass, normed1);
  const SumNormOut middle = norm2_.forward_sum(
      {attended, attention_.bias_for_reader(), x, dropout(pass, Half::attention, x.dim(2))});
  pass.see("attention block", options_.layer, middle.sum);
  const Tensor y = mlp_.forward(pass, middle.y);
  ops::bias_dropout_add_into(y, y, mlp_.bias_for_reader(), middle.sum, dropout(pass, Half::mlp, x.dim(2)));
  pass.see("mlp block", options_.layer, y);
  const bool forget = options_.recompute_norms;
  pass.save(
      Saved{x, forget ? Tensor() : normed1, middle.sum, forget ? Tensor() : middle.y, stats1, middle.stats});
  return {y, in.memory};
}

Flow Block::backward(Pass& pass, const Flow& dout) {
  const Saved saved = pass.take<Saved>();
  const Tensor& dy = dout.hidden;
  const std::int64_t width = dy.dim(2);
  const auto through = [&](const Tensor& d, Half half) {
    const DropoutArgs args = dropout(pass, half, width);
    return args.probability == 0 ? d : ops::dropout(d, args);
  };
  const Tensor normed2 = saved.normed2 ? saved.normed2 : norm2_.again(saved.sum);
  const Tensor dnormed2 = mlp_.backward(pass, through(dy, Half::mlp), normed2);
  const Tensor dsum = norm2_.backward(dnormed2, dy, saved.sum, saved.stats2);
  const Tensor normed1 = saved.normed1 ? saved.normed1 : norm1_.again(saved.x);
  const Tensor dnormed1 = attention_.backward(pass, through(dsum, Half::attention), normed1);
  return {norm1_.backward(dnormed1, dsum, saved.x, saved.stats1), dout.memory};
}

void Block::each_parameter(const VisitParameter& visit) {
  norm1_.each_parameter(visit);
  attention_.each_parameter(visit);
  norm2_.each_parameter(visit);
  mlp_.each_parameter(visit);
}

}  // namespace weft
