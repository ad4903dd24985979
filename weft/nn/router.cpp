// Logits are few numbers a token and stay f32, or f64, whatever activations are.
#include "weft/nn/router.h"

#include <cmath>

#include "weft/nn/layer_weight.h"
#include "weft/nn/region.h"
#include "weft/nn/router_noise.h"
#include "weft/nn/sinkhorn.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/matmul.h"
#include "weft/ops/permute.h"
#include "weft/ops/reduce.h"
#include "weft/ops/routing.h"
#include "weft/tensor/exact_sum.h"

namespace weft {
namespace {

/// Rows [t, c] of tokens [s, b] as [s, b, c].
Tensor by_step(const Tensor& rows, std::int64_t samples) {
  return rows.view({rows.dim(0) / samples, samples, rows.dim(1)});
}

/// to f32 [e] += the sum of rows [t, e], in their type
void add_rows(const Tensor& to, const Tensor& rows) {
  if (rows.dtype() != Dtype::f64) return ops::sum_rows_into(to, rows);
  const Tensor ones = ops::zeros(rows.device(), {1, rows.dim(0)});
  ops::fill(ones, 1);
  ops::matmul_into(to.view({1, to.elements()}), ones, rows, {.accumulate = true});
}

}  // namespace

Router::Router(Parameter weight, std::optional<Parameter> bias, std::optional<Parameter> expert_bias,
               const Options& options, const TokenRanks& ranks, Device& device)
    : weight_(std::move(weight)),
      bias_(std::move(bias)),
      expert_bias_(std::move(expert_bias)),
      options_(options),
      ranks_(ranks) {
  counts_.chosen = ops::zeros(device, {experts()}, Dtype::f32, Use::workspace);
  for (const BalanceLoss& loss : options_.losses)
    if (loss.over == BalancedOver::step) so_far_ = empty_like(counts_.chosen, Use::workspace);
  const auto losses = std::ssize(options_.losses) + (options_.z_loss != 0 ? 1 : 0);
  if (losses > 0) counts_.told = ops::zeros(device, {losses, exact_digits}, Dtype::f64, Use::workspace);
  begin_step();
}

void Router::begin_step() {
  ops::fill(counts_.chosen, 0);
  if (counts_.told) ops::fill(counts_.told, 0);
  counts_.asked = 0;
  if (so_far_) ops::fill(so_far_, 0);
  passes_so_far_ = 0;
}

Tensor Router::logits(const Tensor& x) const {
  Tensor out = empty(x.device(), {x.dim(0), experts()}, options_.precision);
  ops::matmul_into(out, x, weight_.value, {.b = Read::transposed, .bias = bias_ ? bias_->value : Tensor()});
  return out;
}

Router::Out Router::forward(Pass& pass, const Tensor& x) {
  const Tensor heard = jitters(pass) ? ops::multiply(x, jitter(pass, x)) : x;
  const bool guesses = options_.by_chance && pass.training();
  const Tensor scored = guesses ? ops::cast(chance(pass, x), options_.precision) : logits(heard.rows());
  const Routed routed = choose(pass, scored, x);
  const Tensor dlogits = balance(pass, scored, x);
  const auto& room = options_.room(pass.training());
  const Out out =
      room ? kept(routed, x, *room) : Out{routed.weights, routed.experts, routed.experts.elements(), 0};
  if (pass.training() && !pass.again()) count(out.experts);
  pass.save(Saved{scored, dlogits, routed});
  return out;
}

/// [s, b, c] of this rank's steps -> [all, c], of whole sequences, in their order
Tensor Router::whole(const Tensor& rows, std::int64_t samples) const {
  return TokenCut(ranks_.context).whole(enter(ranks_.parts, by_step(rows, samples)).wait()).rows();
}

/// The other way.
Tensor Router::here(const Tensor& all, const Tensor& x) const {
  const Tensor mine = TokenCut(ranks_.context).here(by_step(all, x.dim(1)));
  return ranks_.parts.sequence_cut() ? mine.slice(0, ranks_.parts.rank() * x.dim(0), x.dim(0)) : mine;
}

// Who competes for an expert's room are the tokens of whole sequences, in their order.
Router::Out Router::kept(const Routed& routed, const Tensor& x, double factor) const {
  const Routed all{whole(routed.weights, x.dim(1)), whole(routed.experts, x.dim(1))};
  const double even = double(all.experts.elements()) / double(experts());
  const auto most = std::max(std::int64_t(std::ceil(even * factor)), std::int64_t{options_.least_rows});
  const Tensor mine = here(ops::limit_experts(all, most, options_.policy), x).rows();
  return {routed.weights, mine, std::min(mine.elements(), experts() * most), room_here(most, mine.dim(0))};
}

// Ranks that share a sequence share an expert's room, too, and none knows what the others leave of it. Exact
// sums are over the rows that are.
std::int64_t Router::room_here(std::int64_t most, std::int64_t tokens) const {
  const bool whole = ranks_.in_a_sequence() == 1 && !ranks_.sums.whole_sequences();
  return options_.filled && whole ? std::min(most, tokens) : 0;
}

// So is what Sinkhorn's iteration shares out. Its weights are those of the scores over all experts.
Routed Router::choose(const Pass& pass, const Tensor& scored, const Tensor& x) const {
  const Tensor bias = expert_bias_ ? expert_bias_->value : Tensor();
  if (!options_.sinkhorn || !pass.training())
    return ops::route(scored, bias, options_.chosen, options_.route);
  const Tensor experts = here(shared_out(whole(scored, x.dim(1)), options_.chosen), x).rows();
  const Tensor narrow = ops::cast(scored, Dtype::f32);
  return {weights_at(narrow, experts, options_.route.score), ops::contiguous(experts)};
}

Tensor Router::jitter(const Pass& pass, const Tensor& x) const {
  return ops::cast(noise(pass, x, x.dim(2), Noise::jitter), x.dtype());
}

Tensor Router::chance(const Pass& pass, const Tensor& x) const {
  return ops::contiguous(noise(pass, x, experts(), Noise::logits)).rows();
}

/// f32 [s, b, width]: of whole sequences, whoever holds which part.
Tensor Router::noise(const Pass& pass, const Tensor& x, std::int64_t width, Noise kind) const {
  const std::int64_t steps = x.dim(0) * ranks_.in_a_sequence();
  const Tensor all = noise_for(pass, {steps, width}, {kind, options_.jitter, options_.layer}, x.device());
  return here(all.rows(), x);
}

void Router::count(const Tensor& experts) {
  const Tensor here = ops::count_experts(experts, 1, this->experts()).view({this->experts()});
  ops::add_into(counts_.chosen, counts_.chosen, here);
  counts_.asked += double(experts.elements());
}

/// What each expert's scores are multiplied by, f32 [samples or 1, e]: how often it was chosen.
Tensor Router::factors(Pass& pass, const BalanceLoss& loss, const Tensor& plain, std::int64_t samples) {
  // Microbatches that came since are no part of what this one saw.
  if (loss.over == BalancedOver::step && pass.again()) return pass.kept(options_.layer);
  const std::int64_t apart = loss.over == BalancedOver::sequence ? samples : 1;
  const double tokens = double(plain.dim(0)) * ranks_.in_a_sequence() / double(apart);
  double scale = double(experts()) / (double(options_.chosen) * tokens * tokens * double(apart));
  Tensor counts = ops::count_experts(plain, apart, experts());
  if (ranks_.in_a_sequence() > 1) ranks_.sequences->all_reduce(counts, Reduce::sum).wait();
  if (loss.over == BalancedOver::step) {
    ops::add_into(so_far_, so_far_, counts.view({experts()}));
    ops::copy_into(counts.view({experts()}), so_far_);
    scale /= ++passes_so_far_;
    if (ranks_.batch && ranks_.batch->size() > ranks_.in_a_sequence()) {
      ranks_.batch->all_reduce(counts, Reduce::sum).wait();
      scale /= ranks_.batch->size();  // of which in_a_sequence() have the same counts
    }
  }
  ops::scale_in_place(counts, float(scale));
  if (loss.over == BalancedOver::step && pass.training() && pass.forgetful())
    pass.keep(options_.layer, counts);
  return counts;
}

/// The gradient at the logits, where there will be a backward; terms go to the pass.
Tensor Router::balance(Pass& pass, const Tensor& scored, const Tensor& x) {
  if (options_.losses.empty() && options_.z_loss == 0) return {};
  const bool differentiated = pass.training() && !pass.forgetful();
  const Tensor dlogits =
      differentiated ? ops::zeros(scored.device(), scored.shape(), scored.dtype()) : Tensor();
  const float factor = pass.place().factors.balance * layer_weight(pass, options_.drop, options_.place);
  const std::int64_t samples = x.dim(1);
  if (!options_.losses.empty()) {
    const Tensor plain = ops::top_k(scored, options_.chosen).indices;
    for (std::size_t i = 0; i < options_.losses.size(); ++i) {
      const BalanceLoss& loss = options_.losses[i];
      const Tensor terms =
          ops::balance(dlogits, scored, factors(pass, loss, plain, samples), options_.route.score,
                       loss.coefficient * factor / float(options_.rounds));
      tell(pass, int(i), terms, samples);
    }
  }
  if (options_.z_loss != 0) {
    const auto tokens = float(scored.dim(0) * ranks_.in_a_sequence());
    const Tensor terms =
        ops::square_log_sum(dlogits, scored, options_.z_loss * factor / (tokens * float(options_.rounds)));
    ops::scale_in_place(terms, 1 / tokens);
    tell(pass, int(options_.losses.size()), terms, samples);
  }
  return dlogits;
}

// Tensor-parallel ranks all tell the same, as of every loss; context-parallel ones each their own.
void Router::tell(Pass& pass, int which, const Tensor& terms, std::int64_t samples) const {
  if (options_.rounds > 1) ops::scale_in_place(terms, 1 / float(options_.rounds));
  if (pass.training() && !pass.again()) ops::sum_exact_into(counts_.told.at(0, which), terms);
  ops::scale_in_place(terms, options_.share * layer_weight(pass, options_.drop, options_.place));
  const bool last = which == int(options_.losses.size());
  const int loss_number = last ? options_.z_loss_number : options_.losses[std::size_t(which)].loss_number;
  const Tensor all = enter(ranks_.parts, by_step(terms.view({terms.dim(0), 1}), samples)).wait();
  pass.add_loss(loss_number, all.view({all.elements()}));
}

/// dx f32 [t, h] += dlogits [t, e] W
void Router::add_input_grad(const Tensor& dx, const Tensor& dlogits) const {
  const Tensor w = in_doubles() ? weight_.value : ops::cast(weight_.value, Dtype::f32);
  ops::matmul_into(dx, dlogits, w, {.accumulate = true});
}

void Router::backward(Pass& pass, const Tensor& dx, const Tensor& dweights, const Tensor& x) {
  const Saved saved = pass.take<Saved>();
  const Tensor& logits = saved.logits;
  const Tensor dlogits =
      saved.dlogits ? saved.dlogits : ops::zeros(logits.device(), logits.shape(), logits.dtype());
  ops::route_backward_into(dlogits, dweights, logits, saved.routed, options_.route);
  Tensor heard = x;
  if (jitters(pass)) {
    const Tensor factors = jitter(pass, x), dheard = ops::zeros(dx.device(), dx.shape());
    add_input_grad(dheard, dlogits);
    ops::multiply_into(dheard, dheard, ops::cast(factors, Dtype::f32).rows());
    ops::add_into(dx, dx, dheard);
    heard = ops::multiply(x, factors);
  } else {
    add_input_grad(dx, dlogits);
  }
  owe(pass.weight_grads(), by_step(dlogits, x.dim(1)), in_doubles() ? heard : ops::cast(heard, Dtype::f32));
}

// As of every matrix that is whole on all ranks: where sequences are cut and exact sums are asked for, whole
// ones come together, and context-parallel ranks make a share of the rows each.
void Router::owe(Debts& debts, const Tensor& dlogits, const Tensor& x) {
  const bool whole = ranks_.sums.whole_sequences();
  const Tensor all_d = whole ? enter(ranks_.parts, dlogits).wait() : dlogits;
  const Tensor all_x = whole ? enter(ranks_.parts, x).wait() : x;
  const TokenCut cut = ranks_.sums.tokens(ranks_.context);
  const Share rows = cut.share(experts());
  const auto mine = [cut, rows](const Tensor& d) {
    return cut.whole(d).rows().slice(1, rows.from, rows.count);
  };
  if (weight_.grad.wanted())
    debts.owe([sink = &weight_.grad, mine, rows, cut, all_d, all_x] {
      const GradPlace dw = sink->place(rows.from, rows.count);
      ops::matmul_into(dw.sum, mine(all_d), cut.whole(all_x).rows(),
                       {.a = Read::transposed, .accumulate = dw.on_top});
      sink->added();
    });
  if (bias_ && bias_->grad.wanted())
    debts.owe([sink = &bias_->grad, mine, rows, all_d] {
      add_rows(sink->sum().slice(0, rows.from, rows.count), mine(all_d));
      sink->added();
    });
}

// An expert that had fewer rows than the mean is chosen sooner from now on; one that had as many stays.
void Router::follow(const Tensor& counts) {
  ops::follow_counts(expert_bias_->value, counts, float(options_.bias_rate));
}

void Router::each_parameter(const VisitParameter& visit) {
  visit(weight_);
  if (bias_) visit(*bias_);
  if (expert_bias_) visit(*expert_bias_);
}

}  // namespace weft
