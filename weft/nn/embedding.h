// Words, and learned positions, as vectors.
#pragma once

#include <optional>

#include "weft/nn/layer.h"
#include "weft/tensor/args.h"

namespace weft {

/// The first layer of a model: reads the batch's tokens, not the flow. The vocabulary is cut over the circle.
class Embedding final : public Layer {
 public:
  struct Options {
    float dropout = 0;
    float multiplier = 1;
    std::int64_t first = 0;  // the first word of this rank's rows
    Side side = Side::text;
    TensorParallel tp;
    TokenCut context = TokenCut();
  };
  Embedding(Parameter words, std::optional<Parameter> positions, const Options& options)
      : words_(std::move(words)), positions_(std::move(positions)), options_(options) {}
  /// tokens [s, b] -> [s (/tp), b, h]
  Flow forward(Pass& pass, const Flow& unused) override;
  Flow backward(Pass& pass, const Flow& dy) override;
  void each_parameter(const VisitParameter& visit) override;
  Parameter& words() { return words_; }

 private:
  /// Gradients [s, b, h] of a table's rows, by their numbers.
  struct Rows {
    Tensor dx, ids;
    std::int64_t first = 0;
  };
  void owe_rows(Debts& debts, const Parameter& table, const Rows& rows) const;
  Tensor position_ids(const Pass& pass) const;
  DropoutArgs dropout(const Pass& pass, std::int64_t width) const;
  Parameter words_;
  std::optional<Parameter> positions_;
  Options options_;
};

}  // namespace weft
