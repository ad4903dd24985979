// Rows go to their experts in one order and come back in the same, so a token's outputs are added in
// ascending order of its experts, whoever computed them. What needs none of them is computed while they are
// on their way: forward the shared expert, backward its gradients, and the weights' of the experts; then
// whatever the pass has to do meanwhile.
#include "weft/nn/experts.h"

#include "weft/base/number.h"
#include "weft/nn/region.h"
#include "weft/ops/activation.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/norm.h"
#include "weft/ops/permute.h"
#include "weft/ops/routing.h"

namespace weft {
namespace {

Tensor column(const Tensor& numbers) { return numbers.view({numbers.elements(), 1}); }

/// The first of two logits less the other: [s, b, 2] -> f32 [s, b]
Tensor lead_of(const Tensor& logits) {
  const Tensor both = ops::cast(logits.rows(), Dtype::f32);
  const Tensor lead = ops::contiguous(both.slice(1, 0, 1));
  ops::add_scaled_into(lead, ops::contiguous(both.slice(1, 1, 1)), -1);
  return lead.view({logits.dim(0), logits.dim(1)});
}

/// exp(a) / (exp(a) + exp(b)), sign (a - b) = lead
Tensor share_of(const Tensor& lead, float sign) {
  const Tensor turned = ops::zeros(lead.device(), lead.shape());
  ops::add_scaled_into(turned, lead, sign);
  return ops::activation(turned, {}, Activation::sigmoid);
}

}  // namespace

/// Tensor-parallel ranks that all have the whole sequence share its tokens out.
Tensor Experts::own_tokens(const Tensor& x) const {
  const TensorParallel& tp = options_.tp;
  if (tp.size() == 1 || tp.sequence_cut()) return x;
  const std::int64_t steps = exact(x.dim(0), tp.size());
  return x.slice(0, tp.rank() * steps, steps);
}

Tensor Experts::all_tokens(const Tensor& y) const {
  if (options_.tp.sequence_cut()) return y;
  return enter({options_.tp.circle, Between::sequence_cut, options_.tp.sums}, y).wait();
}

// Rows of experts that are filled up, and those that the host has not seen, are as many as there may be: some
// are zeros, which belong to no token.
Experts::Saved Experts::asked(const Router::Out& routed, const Tensor& own) const {
  const RowPlan plan = ops::plan_rows(routed.experts, router_.experts(), routed.room);
  Saved out{.asked = {},
            .exchange = exchange(routed, plan.offsets, own),
            .factors = {},
            .in = {},
            .before = {},
            .mixed = {}};
  const std::int64_t n = out.exchange.sent();
  out.asked = {plan.tokens.slice(0, 0, n), plan.slots.slice(0, 0, n), {}};
  out.asked.factors = ops::gather_rows(column(routed.weights), out.asked.slots).view({n});
  return out;
}

Exchange Experts::exchange(const Router::Out& routed, const Tensor& offsets, const Tensor& own) const {
  if (routed.room > 0) return Exchange::filled(options_.ranks, router_.experts(), routed.room);
  if (unseen(own)) return Exchange::unseen(offsets, routed.rows);
  return {options_.ranks, offsets, routed.experts.elements()};
}

/// Whether the host need not know whose rows are whose, and so does not wait for it: all stay here, and
/// products take them so.
bool Experts::unseen(const Tensor& own) const {
  return !options_.ranks.exchange() && parts_.up.take_unseen_groups(own) &&
         parts_.down.take_unseen_groups(own);
}

/// i32 [n]: where in the sequence the token of each row stands. Who asks for it has one sequence in a pass.
Tensor Experts::places(const Pass& pass, const ExpertRows& asked, const Tensor& own) const {
  const std::int64_t n = asked.tokens.dim(0);
  if (!options_.ranks.by_place()) return empty(own.device(), {n}, Dtype::i32);
  const Tensor all = pass.batch().text.places;
  const bool cut = all.dim(0) != own.dim(0);
  const Tensor here = cut ? all.slice(0, options_.tp.rank() * own.dim(0), own.dim(0)) : all;
  const Tensor wide = column(ops::cast(here, Dtype::f32));  // exact up to 2^24 steps
  return ops::cast(ops::gather_rows(wide, asked.tokens), Dtype::i32).view({n});
}

Tensor Experts::activated(const Tensor& before) const {
  return options_.gated ? ops::gated(before, {}, options_.gate)
                        : ops::activation(before, {}, options_.gate.f);
}

/// Rows [n, c], added up for each of their tokens: f32 [t, c]
Tensor Experts::mixed(const Tensor& rows, const ExpertRows& asked, const Tensor& like) const {
  Tensor sum = ops::zeros(rows.device(), {like.dim(0) * like.dim(1), rows.dim(1)});
  ops::scatter_add_rows_into(sum, rows, asked.tokens);
  return sum;
}

Tensor Experts::forward(Pass& pass, const Tensor& x, const Flow&) {
  const Tensor own = own_tokens(x);
  Sent sent = send(pass, own);
  const Tensor beside = parts_.shared ? beside_forward(pass, x) : Tensor();
  const Tensor y = all_tokens(chosen_forward(pass, own, std::move(sent)));
  if (parts_.residual_gate) return weighed(pass, y, beside, x);
  if (beside) ops::add_into(y, y, beside);
  return y;
}

/// own [s, b, h], the tokens of this rank
Experts::Sent Experts::send(Pass& pass, const Tensor& own) {
  Saved saved = asked(router_.forward(pass, own), own);
  saved.exchange.arrange(places(pass, saved.asked, own));
  const Tensor x = parts_.latent_in ? parts_.latent_in->forward(own) : own;
  Travelling rows = saved.exchange.leave(rows_asked(x, saved.asked));
  Travelling factors;
  if (!options_.weigh_input) factors = saved.exchange.leave(column(saved.asked.factors));
  return {std::move(saved), std::move(rows), std::move(factors)};
}

/// What experts read of x [s, b, c], at home: [n, c]
Tensor Experts::rows_asked(const Tensor& x, const ExpertRows& asked) const {
  const Tensor rows = ops::gather_rows(x.rows(), asked.tokens);
  if (options_.weigh_input) ops::scale_rows_into(rows, rows, asked.factors);
  return rows;
}

/// f32 [m], of what this rank's experts give
Tensor Experts::factors_of(Travelling sent, const Saved& saved) const {
  const std::int64_t m = saved.in.dim(0);
  if (!options_.weigh_input) return saved.exchange.there(std::move(sent)).view({m});
  const Tensor ones = empty(saved.in.device(), {m});
  ops::fill(ones, 1);
  return ones;
}

Tensor Experts::chosen_forward(Pass& pass, const Tensor& own, Sent sent) {
  Saved saved = std::move(sent.of);
  const ExpertRows& asked = saved.asked;
  const Exchange& exchange = saved.exchange;
  if (exchange.travels()) pass.meanwhile();
  saved.in = exchange.there(std::move(sent.rows));
  saved.factors = factors_of(std::move(sent.factors), saved);
  saved.before = parts_.up.forward(saved.in, exchange.groups());
  const Tensor after = activated(saved.before);
  if (!options_.weigh_input) ops::scale_rows_into(after, after, saved.factors);
  const Tensor out = parts_.down.forward_terms(after, saved.factors, exchange.groups());
  Travelling home = exchange.leave_back(out, own.dtype());
  if (exchange.travels()) pass.meanwhile();
  Tensor y = ops::cast(mixed(exchange.back(std::move(home)), asked, own), own.dtype());
  y = y.view({own.dim(0), own.dim(1), y.dim(1)});
  if (parts_.latent_out) {
    saved.mixed = y;
    y = parts_.latent_out->forward(y);
  }
  pass.save(std::move(saved));
  return y;
}

Tensor Experts::backward(Pass& pass, const Tensor& dy, const Tensor& x, Flow&) {
  Weighed d{dy, dy, {}};
  if (parts_.residual_gate) d = weighed_backward(pass.take<SavedWeighed>(), dy);
  const Saved saved = pass.take<Saved>();
  Travelling dout = send_back(pass, own_tokens(d.dchosen), saved);
  Tensor dx_beside;
  if (parts_.shared) dx_beside = shared_backward(pass, d.dbeside, x);
  if (parts_.residual_gate)
    ops::add_into(dx_beside, dx_beside, parts_.residual_gate->backward(pass, d.dgate, x));
  const Tensor dx = all_tokens(chosen_backward(pass, std::move(dout), saved, own_tokens(x)));
  if (dx_beside) ops::add_into(dx, dx, dx_beside);
  return dx;
}

/// dy [s, b, h] of this rank's tokens, to the ranks of their experts
Travelling Experts::send_back(Pass& pass, const Tensor& dy, const Saved& saved) {
  const Tensor dmixed = parts_.latent_out ? parts_.latent_out->backward(pass, dy, saved.mixed) : dy;
  return saved.exchange.leave(ops::gather_rows(dmixed.rows(), saved.asked.tokens));
}

/// -> dx [s, b, h], of this rank's tokens
Tensor Experts::chosen_backward(Pass& pass, Travelling dout, const Saved& saved, const Tensor& x) {
  const ExpertRows& asked = saved.asked;
  if (saved.exchange.travels()) pass.meanwhile();
  Grads d = rows_backward(pass, saved, saved.exchange.there(std::move(dout)));
  if (options_.weigh_input) d.factors = input_weights_backward(d.in, asked, x);
  Tensor dx = mixed(d.in, asked, x);
  if (parts_.latent_in) {
    const Tensor dinner = ops::cast(dx, x.dtype()).view({x.dim(0), x.dim(1), dx.dim(1)});
    dx = ops::cast(parts_.latent_in->backward(pass, dinner, x), Dtype::f32).rows();
  }
  const Tensor dweights = ops::zeros(x.device(), {dx.dim(0) * router_.chosen(), 1});
  ops::scatter_add_rows_into(dweights, column(d.factors), asked.slots);
  router_.backward(pass, dx, dweights.view({dx.dim(0), router_.chosen()}), x);
  return ops::cast(dx, x.dtype()).view(x.shape());
}

// r = p x  =>  dp = <dr, x>,  dx = p dr, which is written over dr
Tensor Experts::input_weights_backward(const Tensor& dr, const ExpertRows& asked, const Tensor& x) const {
  const Tensor dfactors = ops::dot_rows(dr, ops::gather_rows(x.rows(), asked.tokens));
  ops::scale_rows_into(dr, dr, asked.factors);
  return dfactors;
}

// y = (p a) D^T + p d, a = f(u)  =>  dp = <dy D, a> + <dy, d>,  da = p dy D
Experts::Grads Experts::rows_backward(Pass& pass, const Saved& saved, const Tensor& dout) {
  const Exchange& exchange = saved.exchange;
  const Tensor after = activated(saved.before);
  const Tensor d = parts_.down.input_grad(dout, exchange.groups());
  Tensor dfactors;
  if (!options_.weigh_input) {
    dfactors = parts_.down.dot_terms(d, after);
    if (parts_.down.biased())
      ops::add_into(dfactors, dfactors, parts_.down.factor_grad(dout, exchange.groups()));
    ops::scale_rows_into(after, after, saved.factors);
    ops::scale_rows_into(d, d, saved.factors);
  }
  Tensor dbefore = d;
  if (options_.gated)
    dbefore = ops::gated_backward(d, saved.before, {}, options_.gate);
  else
    ops::activation_backward_into(d, d, saved.before, {}, options_.gate.f);
  const Tensor din = parts_.up.input_grad_terms(dbefore, exchange.groups());
  Travelling in = exchange.leave_back(din, dout.dtype(), parts_.up.parts());
  Travelling factors;
  if (dfactors) factors = exchange.leave_back(column(dfactors), Dtype::f32);
  pass.weight_grads().owe([this, exchange, dout, after, dbefore, in = saved.in, factors = saved.factors] {
    parts_.down.add_grads(dout, after, factors, exchange.groups(), exchange.sequences());
    parts_.up.add_grads(dbefore, in, {}, exchange.groups(), exchange.sequences());
  });
  if (exchange.travels()) pass.meanwhile();
  Tensor din_home = exchange.back(std::move(in));
  return {std::move(din_home), dfactors ? exchange.back(std::move(factors)) : Tensor()};
}

// y = p c + (1 - p) m, p = sigmoid(l): the softmax of two logits that l apart
//   =>  dc = p dy,  dm = (1 - p) dy,  dl = p (1 - p) <dy, c - m>
Tensor Experts::weighed(Pass& pass, const Tensor& chosen, const Tensor& beside, const Tensor& x) {
  const Tensor lead = lead_of(parts_.residual_gate->forward(x));
  pass.save(SavedWeighed{chosen, beside, lead});
  const Tensor y = ops::scale_rows(chosen, share_of(lead, 1));
  ops::add_into(y, y, ops::scale_rows(beside, share_of(lead, -1)));
  return y;
}

Experts::Weighed Experts::weighed_backward(const SavedWeighed& saved, const Tensor& dy) const {
  const Tensor apart = ops::dot_rows(dy, saved.chosen);
  ops::add_scaled_into(apart, ops::dot_rows(dy, saved.beside), -1);
  const Tensor dlead =
      ops::activation_backward(apart.view(saved.lead.shape()), saved.lead, {}, Activation::sigmoid);
  const Tensor dlogits = ops::zeros(dy.device(), {dlead.elements(), 2});
  ops::copy_into(dlogits.slice(1, 0, 1), column(dlead));
  ops::scale_in_place(dlead, -1);
  ops::copy_into(dlogits.slice(1, 1, 1), column(dlead));
  return {ops::scale_rows(dy, share_of(saved.lead, 1)), ops::scale_rows(dy, share_of(saved.lead, -1)),
          ops::cast(dlogits, dy.dtype()).view({dy.dim(0), dy.dim(1), 2})};
}

/// What all tokens go through; a residual mixture weighs it later.
Tensor Experts::beside_forward(Pass& pass, const Tensor& x) {
  const Tensor y = parts_.shared->forward(pass, x, {});
  if (const Tensor bias = parts_.shared->bias_for_reader()) ops::add_bias_in_place(y.rows(), bias);
  if (!parts_.shared_gate) return y;
  const Tensor gate = parts_.shared_gate->forward(x);
  const Tensor factor = ops::cast(ops::activation(gate, {}, Activation::sigmoid), Dtype::f32);
  pass.save(SavedGate{y, gate});
  return ops::scale_rows(y, factor.view({y.dim(0), y.dim(1)}));
}

Tensor Experts::shared_backward(Pass& pass, const Tensor& dy, const Tensor& x) {
  Flow nothing;
  if (!parts_.shared_gate) return parts_.shared->backward(pass, dy, x, nothing);
  const SavedGate saved = pass.take<SavedGate>();
  const Tensor factor = ops::cast(ops::activation(saved.logits, {}, Activation::sigmoid), Dtype::f32);
  const Tensor dfactor = ops::cast(ops::dot_rows(dy, saved.y), x.dtype()).view(saved.logits.shape());
  const Tensor dgate = ops::activation_backward(dfactor, saved.logits, {}, Activation::sigmoid);
  const Tensor dshared = ops::scale_rows(dy, factor.view({dy.dim(0), dy.dim(1)}));
  Tensor dx = parts_.shared->backward(pass, dshared, x, nothing);
  ops::add_into(dx, dx, parts_.shared_gate->backward(pass, dgate, x));
  return dx;
}

void Experts::each_parameter(const VisitParameter& visit) {
  router_.each_parameter(visit);
  parts_.up.each_parameter(visit);
  parts_.down.each_parameter(visit);
  if (parts_.shared) parts_.shared->each_parameter(visit);
  for (std::optional<WholeLinear>* part :
       {&parts_.shared_gate, &parts_.residual_gate, &parts_.latent_in, &parts_.latent_out})
    if (*part) (*part)->each_parameter(visit);
}

}  // namespace weft
