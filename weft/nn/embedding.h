// Words, learned positions and token types as vectors.
#pragma once

#include <optional>

#include "weft/nn/layer.h"
#include "weft/tensor/args.h"

namespace weft {

/// A table of its own, or that of an embedding before this one, which outlives it.
class Table {
 public:
  Table(Parameter&& own) : own_(std::move(own)) {}
  Table(Parameter& other) : other_(&other) { ++other.uses; }
  Parameter& get() { return other_ ? *other_ : *own_; }
  const Parameter& get() const { return other_ ? *other_ : *own_; }
  Parameter* own() { return own_ ? &*own_ : nullptr; }

 private:
  std::optional<Parameter> own_;
  Parameter* other_ = nullptr;
};

/// Where a stack of layers begins: reads the batch's tokens; other streams flow by. The vocabulary is cut
/// over the circle.
class Embedding final : public Layer {
 public:
  struct Options {
    float dropout = 0;
    float multiplier = 1;
    bool wide = false;       // gives f32, whatever its tables are
    std::int64_t first = 0;  // the first word of this rank's rows
    Side side = Side::text;
    TensorParallel tp;
    TokenCut context = TokenCut();
  };
  /// Tables that are added to the words'; types are of two kinds, or as many as the table has rows.
  struct Added {
    std::optional<Table> positions, types = std::nullopt;
  };
  Embedding(Table words, Added added, const Options& options)
      : words_(std::move(words)), added_(std::move(added)), options_(options) {}
  /// tokens [s, b] -> [s (/tp), b, h]
  Flow forward(Pass& pass, const Flow& beside) override;
  Flow backward(Pass& pass, const Flow& dy) override;
  /// The same of other words and positions; `place` numbers the dropout of each reading.
  Tensor look_up(const Pass& pass, const Sequences& read, int place) const;
  void look_up_backward(Pass& pass, const Tensor& dx, const Sequences& read, int place) const;
  void each_parameter(const VisitParameter& visit) override;
  void each_read(const VisitParameter& visit) override;
  void each_read_back(const VisitParameter&) override {}
  Parameter& words() { return words_.get(); }
  /// Null without learned positions.
  Parameter* positions() { return added_.positions ? &added_.positions->get() : nullptr; }

 private:
  /// Gradients [s, b, h] of a table's rows, by their numbers.
  struct RowGradients {
    Tensor dx, ids;
    std::int64_t first = 0;
  };
  void owe_rows(Debts& debts, const Parameter& table, const RowGradients& rows) const;
  /// ids [s, b]: those of the part of the sequence that this rank keeps after the cut layer.
  Tensor kept(const Tensor& ids) const;
  void add_rows(const Tensor& x, const Parameter& table, const Tensor& ids) const;
  struct Gradients;
  void owe_added(Debts& debts, const Parameter& table, const Tensor& ids, const Gradients& d) const;
  DropoutArgs dropout(const Pass& pass, int place) const;
  int place() const { return options_.side == Side::source ? 1 : 0; }
  std::int64_t width() const { return words_.get().shape[1]; }
  Table words_;
  Added added_;
  Options options_;
};

}  // namespace weft
