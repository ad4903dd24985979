// Gather forward, scatter-add backward; words of other ranks' rows come as zeros and are summed in.
#include "weft/nn/embedding.h"

#include "weft/base/number.h"
#include "weft/nn/block.h"
#include "weft/nn/region.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/embedding.h"

namespace weft {
namespace {

Tensor flat(const Tensor& x) { return x.view({x.elements()}); }

}  // namespace

// Positions of the part of the sequence that this rank keeps after the cut layer.
Tensor Embedding::position_ids(const Pass& pass) const {
  const Tensor& all = pass.batch().of(options_.side).positions;
  if (!options_.tp.sequence_cut()) return all;
  const std::int64_t part = exact(all.dim(0), options_.tp.size());
  return all.slice(0, options_.tp.rank() * part, part);
}

DropoutArgs Embedding::dropout(const Pass& pass, std::int64_t width) const {
  if (!pass.training() || options_.dropout == 0) return {};
  DropoutArgs args =
      hidden_dropout(pass, {options_.tp, options_.side, width}, pass.address(Purpose::dropout_embedding, 0));
  args.probability = options_.dropout;
  return args;
}

Flow Embedding::forward(Pass& pass, const Flow&) {
  const Tensor& tokens = pass.batch().of(options_.side).tokens;
  const std::int64_t width = words_.shape[1];
  const Tensor found =
      ops::gather(words_.value, flat(tokens), options_.first).view({tokens.dim(0), tokens.dim(1), width});
  const Tensor x = leave(options_.tp, found).wait();
  if (positions_) {
    const Tensor ids = position_ids(pass);
    const Tensor places = ops::gather(positions_->value, flat(ids), 0);
    ops::add_into(x, x, places.view(x.shape()));
  }
  if (options_.multiplier != 1) ops::scale_in_place(x, options_.multiplier);
  const DropoutArgs args = dropout(pass, width);
  if (args.probability > 0) ops::dropout_into(x, x, args);
  pass.see("embedding", -1, x);
  return {x, {}};
}

Flow Embedding::backward(Pass& pass, const Flow& dout) {
  const DropoutArgs args = dropout(pass, words_.shape[1]);
  Tensor dx = args.probability > 0 ? ops::dropout(dout.hidden, args) : dout.hidden;
  if (options_.multiplier != 1) ops::scale_in_place(dx, options_.multiplier);
  Debts& debts = pass.weight_grads();
  const auto& side = pass.batch().of(options_.side);
  const Tensor full = enter(options_.tp, dx).wait();
  if (positions_) {
    // A rank's own part of the sequence is enough where other ranks' rows are terms of the same sum.
    const bool terms = !options_.tp.sums.terms(Axis::tp).empty();
    owe_rows(debts, *positions_, terms ? Rows{dx, position_ids(pass), 0} : Rows{full, side.positions, 0});
  }
  owe_rows(debts, words_, {full, side.tokens, options_.first});
  return {};
}

// Where tokens are cut, rows are added to in the order of the sequence, by the first of the ranks that share
// it.
void Embedding::owe_rows(Debts& debts, const Parameter& table, const Rows& rows) const {
  if (!table.grad.wanted()) return;
  debts.owe([sink = &table.grad, rows, cut = options_.context] {
    const Tensor all = cut.whole(rows.dx), where = cut.whole(rows.ids);
    if (cut.rank() == 0) ops::scatter_add_into(sink->sum(), all.rows(), flat(where), rows.first);
    sink->added();
  });
}

void Embedding::each_parameter(const VisitParameter& visit) {
  visit(words_);
  if (positions_) visit(*positions_);
}

}  // namespace weft
