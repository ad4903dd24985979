// A layer that sees a part of each sample's tokens; the others stay as they were.
#pragma once

#include <memory>

#include "weft/nn/layer.h"
#include "weft/nn/token_drop.h"

namespace weft {

/// Around a block whose sequences are whole here. The tokens it sees stand in their order, with the positions
/// and segments that they have in the sample; to dropout they are a sample of that length.
class PartOfTokens final : public Layer {
 public:
  PartOfTokens(std::unique_ptr<Layer> inner, TokenDrop drop, int layer)
      : inner_(std::move(inner)), drop_(std::move(drop)), layer_(layer) {}
  Flow forward(Pass& pass, const Flow& x) override;
  Flow backward(Pass& pass, const Flow& dy) override;
  void each_parameter(const VisitParameter& visit) override { inner_->each_parameter(visit); }
  void each_router(const VisitRouter& visit) override { inner_->each_router(visit); }
  void each_read(const VisitParameter& visit) override { inner_->each_read(visit); }
  void each_read_back(const VisitParameter& visit) override { inner_->each_read_back(visit); }

 private:
  struct Chosen {
    Batch seen;
    Tensor rows;  // i32 [k b]: of hidden states [s b, h], those that are seen
    Tensor home;  // i32 [s b]: of all of them and then those that were seen, which ones go on
  };
  /// How many of a sample's tokens it sees; all where nobody trains.
  std::int64_t seen(const Pass& pass, std::int64_t length) const;
  Chosen choose(const Pass& pass, std::int64_t length, std::int64_t kept) const;

  std::unique_ptr<Layer> inner_;
  TokenDrop drop_;
  int layer_;
};

}  // namespace weft
