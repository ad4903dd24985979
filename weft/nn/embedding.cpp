// Gather forward, scatter-add backward; words of other ranks' rows come as zeros and are summed in.
#include "weft/nn/embedding.h"

#include "weft/base/number.h"
#include "weft/nn/block.h"
#include "weft/nn/region.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/embedding.h"
#include "weft/tensor/named.h"

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
  owe_rows(debts, table, terms ? RowGradients{d.here, kept(ids), 0} : RowGradients{d.full, ids, 0});
}

DropoutArgs Embedding::dropout(const Pass& pass, int place) const {
  if (!pass.training() || options_.dropout == 0) return {};
  DropoutArgs args = hidden_dropout(pass, {options_.tp, options_.side, width()},
                                    pass.address(Purpose::dropout_embedding, place));
  args.probability = options_.dropout;
  return args;
}

Tensor Embedding::look_up(const Pass& pass, const Sequences& read, int place) const {
  const Tensor& tokens = read.tokens;
  const Named named(tokens.device(), "embedding");
  const Tensor found = ops::gather(words_.get().value, flat(tokens), options_.first)
                           .view({tokens.dim(0), tokens.dim(1), width()});
  Tensor x = leave(options_.tp, found).wait();  // a word and zeros: no type makes another number of it
  if (options_.wide) x = ops::cast(x, Dtype::f32);
  if (added_.positions) add_rows(x, added_.positions->get(), read.positions);
  if (added_.types) add_rows(x, added_.types->get(), read.types);
  if (options_.multiplier != 1) ops::scale_in_place(x, options_.multiplier);
  const DropoutArgs args = dropout(pass, place);
  if (args.probability > 0) ops::dropout_into(x, x, args);
  pass.see("embedding", -1, x);
  return x;
}

Flow Embedding::forward(Pass& pass, const Flow& beside) {
  Flow out = beside;
  out.hidden = look_up(pass, pass.batch().of(options_.side), place());
  return out;
}

void Embedding::look_up_backward(Pass& pass, const Tensor& dout, const Sequences& side, int place) const {
  const Named named(dout.device(), "embedding");
  const DropoutArgs args = dropout(pass, place);
  Tensor dx = args.probability > 0 ? ops::dropout(dout, args) : dout;
  if (options_.multiplier != 1) ops::scale_in_place(dx, options_.multiplier);
  Debts& debts = pass.weight_grads();
  const Tensor full = enter(options_.tp, dx).wait();
  if (added_.positions) owe_added(debts, added_.positions->get(), side.positions, {dx, full});
  if (added_.types) owe_added(debts, added_.types->get(), side.types, {dx, full});
  owe_rows(debts, words_.get(), {full, side.tokens, options_.first});
}

Flow Embedding::backward(Pass& pass, const Flow& dout) {
  look_up_backward(pass, dout.hidden, pass.batch().of(options_.side), place());
  Flow d = dout;
  d.hidden = d.rounded = {};
  return d;
}

// Where tokens are cut, rows are added to in the order of the sequence, by the first of the ranks that share
// it.
void Embedding::owe_rows(Debts& debts, const Parameter& table, const RowGradients& rows) const {
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
