// Attention, an MLP or experts whose output has a norm of its own.
#pragma once

#include "weft/nn/sublayer.h"

namespace weft {

/// norm(inner(x)), which leaves no bias to the reader.
class NormedInner final : public Inner {
 public:
  NormedInner(std::unique_ptr<Inner> inner, Norm norm) : inner_(std::move(inner)), norm_(std::move(norm)) {}
  Tensor forward(Pass& pass, const Tensor& x, const Flow& beside) override;
  Tensor backward(Pass& pass, const Tensor& dy, const Tensor& x, Flow& dbeside) override;
  Tensor bias_for_reader() const override { return {}; }
  void each_parameter(const VisitParameter& visit) override;
  void each_router(const VisitRouter& visit) override { inner_->each_router(visit); }

 private:
  std::unique_ptr<Inner> inner_;
  Norm norm_;
};

}  // namespace weft
