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

/// Of this rank's part of the sequence, and of all that the circle holds.
struct Embedding::Gradients {
  Tensor here, full;
};

Tensor Embedding::kept(const Tensor& ids) const {
  if (!options_.tp.sequence_cut()) return ids;
  const std::int64_t part = exact(ids.dim(0), options_.tp.size());
  return ids.slice(0, options_.tp.rank() * part, part);
}

void Embedding::add_rows(const Tensor& x, const Parameter& table, const Tensor& ids) const {
  const Tensor rows = ops::gather(table.value, flat(kept(ids)), 0);
  ops::add_into(x, x, rows.view(x.shape()));
}

// A rank's own part of the sequence is enough where other ranks' rows are terms of the same sum.
void Embedding::owe_added(Debts& debts, const Parameter& table, const Tensor& ids, const Gradients& d) const {
  const bool terms = !options_.tp.sums.terms(Axis::tp).empty();
  owe_rows(debts, table, terms ? Rows{d.here, kept(ids), 0} : Rows{d.full, ids, 0});
}

DropoutArgs Embedding::dropout(const Pass& pass, std::int64_t width) const {
  if (!pass.training() || options_.dropout == 0) return {};
  DropoutArgs args =
      hidden_dropout(pass, {options_.tp, options_.side, width},
                     pass.address(Purpose::dropout_embedding, options_.side == Side::source ? 1 : 0));
  args.probability = options_.dropout;
  return args;
}

Flow Embedding::forward(Pass& pass, const Flow& beside) {
  const Tensor& tokens = pass.batch().of(options_.side).tokens;
  const Tensor found = ops::gather(words_.get().value, flat(tokens), options_.first)
                           .view({tokens.dim(0), tokens.dim(1), width()});
  const Tensor x = leave(options_.tp, found).wait();
  if (added_.positions) add_rows(x, added_.positions->get(), pass.batch().of(options_.side).positions);
  if (added_.types) add_rows(x, added_.types->get(), pass.batch().of(options_.side).types);
  if (options_.multiplier != 1) ops::scale_in_place(x, options_.multiplier);
  const DropoutArgs args = dropout(pass, width());
  if (args.probability > 0) ops::dropout_into(x, x, args);
  pass.see("embedding", -1, x);
  Flow out = beside;
  out.hidden = x;
  return out;
}

Flow Embedding::backward(Pass& pass, const Flow& dout) {
  const DropoutArgs args = dropout(pass, width());
  Tensor dx = args.probability > 0 ? ops::dropout(dout.hidden, args) : dout.hidden;
  if (options_.multiplier != 1) ops::scale_in_place(dx, options_.multiplier);
  Debts& debts = pass.weight_grads();
  const auto& side = pass.batch().of(options_.side);
  const Tensor full = enter(options_.tp, dx).wait();
  if (added_.positions) owe_added(debts, added_.positions->get(), side.positions, {dx, full});
  if (added_.types) owe_added(debts, added_.types->get(), side.types, {dx, full});
  owe_rows(debts, words_.get(), {full, side.tokens, options_.first});
  Flow d = dout;
  d.hidden = {};
  return d;
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
  const auto visit_own = [&](Table& table) {
    if (Parameter* own = table.own()) visit(*own);
  };
  visit_own(words_);
  if (added_.positions) visit_own(*added_.positions);
  if (added_.types) visit_own(*added_.types);
}

void Embedding::each_read(const VisitParameter& visit) {
  visit(words_.get());
  if (added_.positions) visit(added_.positions->get());
  if (added_.types) visit(added_.types->get());
}

}  // namespace weft
