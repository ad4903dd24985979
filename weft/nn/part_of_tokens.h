// A layer that sees a part of each sample's tokens; the others stay as they were.
#pragma once

#include <memory>

#include "weft/nn/layer.h"
#include "weft/nn/linear.h"
#include "weft/nn/token_cut.h"
#include "weft/nn/token_drop.h"

namespace weft {

/// Around a block. The tokens it sees stand in their order, with the positions and segments that they have in
/// the sample; to dropout they are a sample of that length. Ranks that share a sequence share those tokens
/// out as they do a sequence, so on the way in and out hidden states come together.
class PartOfTokens final : public Layer {
 public:
  struct Cuts {
    TensorParallel tp;
    TokenCut context;
  };
  PartOfTokens(std::unique_ptr<Layer> inner, TokenDrop drop, int layer, const Cuts& cuts)
      : inner_(std::move(inner)), drop_(std::move(drop)), layer_(layer), cuts_(cuts) {}
  Flow forward(Pass& pass, const Flow& x) override;
  Flow backward(Pass& pass, const Flow& dy) override;
  void each_parameter(const VisitParameter& visit) override { inner_->each_parameter(visit); }
  void each_router(const VisitRouter& visit) override { inner_->each_router(visit); }
  void each_read(const VisitParameter& visit) override { inner_->each_read(visit); }
  void each_read_back(const VisitParameter& visit) override { inner_->each_read_back(visit); }

 private:
  struct Chosen {
    Batch seen;
    Tensor rows;  // i32 [k (/c/tp) b]: of whole hidden states [s b, h], those that are seen here
    Tensor
        home;  // i32 [s (/c/tp) b]: of those that are here, and then all k that were seen, which ones go on
  };
  /// Places of a sample's tokens, ascending, one sample after the other.
  using Places = std::vector<std::vector<std::int32_t>>;
  /// Tokens of a sample, whose part [s (/c/tp)] is here.
  std::int64_t whole(std::int64_t part) const;
  /// How many of a sample's tokens it sees; all where nobody trains.
  std::int64_t seen(const Pass& pass, std::int64_t length) const;
  Places draw(const Pass& pass, std::int64_t length, std::int64_t kept) const;
  Chosen choose(const Pass& pass, std::int64_t length, std::int64_t kept) const;
  Batch batch_of(const Batch& batch, const Places& places) const;
  /// x [s (/c/tp), b, h] -> [s, b, h]
  Tensor together(const Tensor& x) const;

  std::unique_ptr<Layer> inner_;
  TokenDrop drop_;
  int layer_;
  Cuts cuts_;
};

}  // namespace weft
