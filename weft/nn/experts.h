// A mixture of experts in the place of an MLP: each token is computed by a few of many.
#pragma once

#include <memory>

#include "weft/nn/expert_exchange.h"
#include "weft/nn/mlp.h"
#include "weft/nn/router.h"
#include "weft/nn/whole_linear.h"

namespace weft {

class Experts final : public Inner {
 public:
  struct Options {
    Gate gate;
    bool gated = false;  // else the gate's function is all that it says
    bool weigh_input = false;
    TensorParallel tp;  // how activations lie outside
    ExpertRanks ranks;
  };
  struct Parts {
    ExpertProducts up, down;
    std::unique_ptr<Mlp> shared = nullptr;                  // what all tokens go through, too
    std::optional<WholeLinear> shared_gate = std::nullopt;  // [1, h]: times sigmoid of this
    /// [2, h]: the softmax of this weighs the chosen experts and what all tokens go through.
    std::optional<WholeLinear> residual_gate = std::nullopt;
    std::optional<WholeLinear> latent_in = std::nullopt;  // to fewer channels, and back
    std::optional<WholeLinear> latent_out = std::nullopt;
  };
  Experts(Router router, Parts parts, const Options& options)
      : router_(std::move(router)), parts_(std::move(parts)), options_(options) {}
  Tensor forward(Pass& pass, const Tensor& x, const Flow& beside) override;
  Tensor backward(Pass& pass, const Tensor& dy, const Tensor& x, Flow& dbeside) override;
  Tensor bias_for_reader() const override { return {}; }
  void each_parameter(const VisitParameter& visit) override;
  void each_router(const VisitRouter& visit) override { visit(router_); }

 private:
  /// What this rank's tokens ask of experts: rows by expert.
  struct ExpertRows {
    Tensor tokens, slots;  // i32 [n]
    Tensor factors;        // f32 [n]
  };
  struct Saved {
    ExpertRows asked;
    Exchange exchange;
    Tensor factors;     // f32 [m], of the rows that this rank's experts compute
    Tensor in, before;  // of up, and of the activation
    Tensor mixed;       // what came of the experts for each token, where they work on fewer channels
  };
  /// On the way to the ranks of their experts.
  struct Sent {
    Saved of;
    Travelling rows, factors;
  };
  struct SavedGate {
    Tensor y, logits;  // of shared experts before they are multiplied, and [s, b, 1]
  };
  struct SavedWeighed {
    Tensor chosen, beside;  // what is weighed, [s, b, h]
    Tensor lead;            // f32 [s, b]: the gate's first logit less its second
  };
  struct Grads {
    Tensor in, factors;
  };
  /// Gradients of what is weighed, [s, b, h], and of the gate's logits [s, b, 2].
  struct Weighed {
    Tensor dchosen, dbeside, dgate;
  };
  Tensor own_tokens(const Tensor& x) const;
  Tensor all_tokens(const Tensor& y) const;
  Saved asked(const Router::Out& routed, const Tensor& own) const;
  Exchange exchange(const Router::Out& routed, const Tensor& offsets, const Tensor& own) const;
  bool unseen(const Tensor& own) const;
  Tensor rows_asked(const Tensor& x, const ExpertRows& asked) const;
  Tensor factors_of(Travelling sent, const Saved& saved) const;
  Tensor places(const Pass& pass, const ExpertRows& asked, const Tensor& own) const;
  Tensor activated(const Tensor& before) const;
  Tensor mixed(const Tensor& rows, const ExpertRows& asked, const Tensor& like) const;
  Sent send(Pass& pass, const Tensor& own);
  Tensor chosen_forward(Pass& pass, const Tensor& own, Sent sent);
  Travelling send_back(Pass& pass, const Tensor& dy, const Saved& saved);
  Tensor chosen_backward(Pass& pass, Travelling dout, const Saved& saved, const Tensor& x);
  Grads rows_backward(Pass& pass, const Saved& saved, const Tensor& dout);
  Tensor input_weights_backward(const Tensor& dr, const ExpertRows& asked, const Tensor& x) const;
  Tensor beside_forward(Pass& pass, const Tensor& x);
  Tensor weighed(Pass& pass, const Tensor& chosen, const Tensor& beside, const Tensor& x);
  Weighed weighed_backward(const SavedWeighed& saved, const Tensor& dy) const;
  Tensor shared_backward(Pass& pass, const Tensor& dy, const Tensor& x);

  Router router_;
  Parts parts_;
  Options options_;
};

}  // namespace weft
