// Forgets what its layers saved and makes it again when backward comes.
#pragma once

#include <memory>
#include <optional>

#include "weft/nn/layer.h"
#include "weft/nn/sublayer.h"

namespace weft {

/// Around one layer, or a run of them: only the input of the first is kept. Of its hidden states, which ranks
/// of `cut` all have, each keeps a part, and backward brings them together.
class RecomputeLayers final : public Layer {
 public:
  explicit RecomputeLayers(std::vector<std::unique_ptr<Layer>> inner,
                           std::optional<TensorParallel> cut = std::nullopt)
      : cut_(cut) {
    inner_.layers = std::move(inner);
  }
  Flow forward(Pass& pass, const Flow& x) override;
  Flow backward(Pass& pass, const Flow& dy) override;
  void each_parameter(const VisitParameter& visit) override { inner_.each_parameter(visit); }
  void each_router(const VisitRouter& visit) override { inner_.each_router(visit); }
  void each_read(const VisitParameter& visit) override {
    for (const auto& layer : inner_.layers) layer->each_read(visit);
  }

 private:
  struct Saved {
    Flow x;
    Shape whole;  // of the hidden states, where a part is kept
  };
  Saved kept(const Flow& x) const;
  Flow input_of(const Saved& saved) const;
  void go_again(Pass& pass, const Flow& x);

  Stage inner_;
  std::optional<TensorParallel> cut_;
  Pass again_;  // kept for its memory; open only during backward
};

/// Around what stands between a norm and an addition, and reads nothing else: its input is kept by the block.
class RecomputeInner final : public Inner {
 public:
  explicit RecomputeInner(std::unique_ptr<Inner> inner) : inner_(std::move(inner)) {}
  Tensor forward(Pass& pass, const Tensor& x, const Flow& beside) override;
  Tensor backward(Pass& pass, const Tensor& dy, const Tensor& x, Flow& dbeside) override;
  Tensor bias_for_reader() const override { return inner_->bias_for_reader(); }
  void each_parameter(const VisitParameter& visit) override { inner_->each_parameter(visit); }
  void each_router(const VisitRouter& visit) override { inner_->each_router(visit); }

 private:
  void go_again(Pass& pass, const Tensor& x);

  std::unique_ptr<Inner> inner_;
  Pass again_;  // kept for its memory
};

}  // namespace weft
