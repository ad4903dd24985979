// Both heads are small beside the words' logits, so ranks repeat them rather than cut them.
#include "weft/nn/encoder_heads.h"

#include "weft/nn/region.h"
#include "weft/ops/activation.h"
#include "weft/ops/elementwise.h"

namespace weft {
namespace {

constexpr VocabularyPart both_orders{.first = 0, .count = 2, .whole = 2};

}  // namespace

Flow LanguageTransform::forward(Pass& pass, const Flow& in) {
  const Tensor& x = in.hidden;
  const Tensor before = dense_.forward(x.rows()).view(x.shape());
  const Tensor after = ops::activation(before, {}, Activation::gelu_erf);
  auto [y, stats] = norm_.forward(after);
  pass.see("transform of the language head", -1, y);
  pass.save(Saved{x, before, after, stats});
  Flow out = in;
  out.hidden = y;
  return out;
}

Flow LanguageTransform::backward(Pass& pass, const Flow& dout) {
  const Saved saved = pass.take<Saved>();
  const Tensor d = norm_.backward(dout.hidden, {}, saved.after, saved.stats);
  ops::activation_backward_into(d, d, saved.before, {}, Activation::gelu_erf);
  const Tensor dy = for_whole_weight(tp_, d), x = for_whole_weight(tp_, saved.x);
  dense_.owe_weight_grads(pass.weight_grads(), {dy.rows()}, x.rows());
  return {dense_.input_grad({d.rows()}).view(d.shape()), dout.memory};
}

void LanguageTransform::each_parameter(const VisitParameter& visit) {
  dense_.each_parameter(visit);
  norm_.each_parameter(visit);
}

/// x [s (/tp), b, h] -> [b, h] of the sequence's first position, on every tensor-parallel rank
Tensor SentenceOrderHead::first_position(const Tensor& x) const {
  const Tensor here = x.at(0, 0);
  if (!options_.tp.sequence_cut()) return here;
  const Tensor first = empty(x.device(), here.shape(), x.dtype());
  if (options_.tp.rank() == 0) ops::copy_into(first, here);
  options_.tp.circle.broadcast(first, 0).wait();
  return first;
}

/// Logits [b, 2] become their own gradient, where there is training.
Tensor SentenceOrderHead::measured(Pass& pass, const Tensor& logits) const {
  const Batch& batch = pass.batch();
  const Tensor max = ops::loss_max(logits, both_orders);
  const ops::LossSums sums = ops::loss_sums(max, logits, batch.sentence_order, both_orders);
  const Tensor losses = ops::loss_finish(sums.parts);
  ops::multiply_into(losses, losses, batch.sentence_mask);
  pass.add_loss(options_.loss_number, losses);
  if (!pass.training() || pass.forgetful()) return {};
  const Tensor weight = empty_like(batch.sentence_mask);
  ops::copy_into(weight, batch.sentence_mask);
  ops::scale_in_place(weight, pass.place().factors.sample);
  ops::loss_backward_in_place(logits, sums.parts, {batch.sentence_order, weight}, both_orders);
  return logits;
}

Flow SentenceOrderHead::forward(Pass& pass, const Flow& in) {
  if (pass.place().logits_count > 0) return in;
  if (!options_.holds_first) {
    pass.save(Saved{});
    return in;
  }
  Saved saved{.first = first_position(in.hidden)};
  saved.before = pooler_.forward(saved.first);
  saved.pooled = ops::activation(saved.before, {}, Activation::tanh);
  const Tensor logits = binary_.forward(saved.pooled);
  pass.see("logits of the sentence order", -1, logits);
  saved.dlogits = measured(pass, logits);
  pass.save(std::move(saved));
  return in;
}

Flow SentenceOrderHead::backward(Pass& pass, const Flow& dout) {
  const Saved saved = pass.take<Saved>();
  Debts& debts = pass.weight_grads();
  if (!saved.dlogits) {
    each_parameter([&](Parameter& p) {
      if (p.grad.wanted()) debts.owe([sink = &p.grad] { sink->added(); });
    });
    return dout;
  }
  const Tensor d = binary_.input_grad({saved.dlogits});
  binary_.owe_weight_grads(debts, {saved.dlogits}, saved.pooled);
  ops::activation_backward_into(d, d, saved.before, {}, Activation::tanh);
  pooler_.owe_weight_grads(debts, {d}, saved.first);
  if (options_.tp.sequence_cut() && options_.tp.rank() > 0) return dout;
  const Tensor first = dout.hidden.at(0, 0);
  ops::add_into(first, first, pooler_.input_grad({d}));
  return dout;
}

void SentenceOrderHead::each_parameter(const VisitParameter& visit) {
  pooler_.each_parameter(visit);
  binary_.each_parameter(visit);
}

}  // namespace weft
