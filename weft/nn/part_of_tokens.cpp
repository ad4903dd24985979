// Rows move by an index that the host draws; what goes by samples is read through a batch of those tokens.
#include "weft/nn/part_of_tokens.h"

#include <algorithm>
#include <numeric>

#include "weft/base/number.h"
#include "weft/nn/context_parts.h"
#include "weft/nn/region.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/permute.h"
#include "weft/tensor/host.h"

namespace weft {
namespace {

/// While it lives, layers read another batch.
class Reading {
 public:
  Reading(Pass& pass, const Batch& batch) : pass_(pass), before_(pass.read(&batch)) {}
  ~Reading() { (void)pass_.read(before_); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  Pass& pass_;
  const Batch* before_;
};

/// Of whole numbers that f32 holds: [n] of x.
Tensor picked(const Tensor& x, const Tensor& index) {
  const Tensor column = ops::cast(ops::contiguous(x).view({x.elements(), 1}), Dtype::f32);
  return ops::cast(ops::gather_rows(column, index), Dtype::i32);
}

/// x [s, b, h] -> [k (/c/tp), b, h]
Tensor taken(const Tensor& x, const Tensor& rows) {
  const std::int64_t b = x.dim(1), h = x.dim(2);
  return ops::gather_rows(ops::contiguous(x).view({x.dim(0) * b, h}), rows).view({rows.dim(0) / b, b, h});
}

/// x [s (/c/tp), b, h], and y [k, b, h] in the place of the rows that were taken
Tensor put_back(const Tensor& x, const Tensor& y, const Tensor& home) {
  const std::int64_t h = x.dim(2), rows = x.elements() / h, more = y.elements() / h;
  const Tensor all = empty(x.device(), {rows + more, h}, x.dtype());
  ops::copy_into(all.slice(0, 0, rows), ops::contiguous(x).view({rows, h}));
  ops::copy_into(all.slice(0, rows, more), ops::contiguous(y).view({more, h}));
  return ops::gather_rows(all, home).view(x.shape());
}

/// The steps of a whole sequence that context-parallel ranks leave here, in their order here.
std::vector<std::int64_t> steps_here(std::int64_t length, const TokenCut& cut) {
  std::vector<std::int64_t> out(std::size_t(length), 0);
  std::iota(out.begin(), out.end(), std::int64_t{0});
  if (!cut.cut()) return out;
  const Zigzag places{cut.ranks(), exact(length, std::int64_t{2} * cut.ranks())};
  out.clear();
  for (const int half : {0, 1})
    for (std::int64_t i = 0; i < places.chunk; ++i) out.push_back(places.start(cut.rank(), half) + i);
  return out;
}

/// Of these, what the sequence cut leaves here.
std::vector<std::int64_t> part_here(const std::vector<std::int64_t>& steps, const TensorParallel& tp) {
  if (!tp.sequence_cut()) return steps;
  const std::int64_t part = exact(std::ssize(steps), std::int64_t{tp.size()});
  const auto from = steps.begin() + tp.rank() * part;
  return {from, from + part};
}

}  // namespace

std::int64_t PartOfTokens::whole(std::int64_t part) const {
  return part * cuts_.context.ranks() * (cuts_.tp.sequence_cut() ? cuts_.tp.size() : 1);
}

Tensor PartOfTokens::together(const Tensor& x) const {
  return cuts_.context.whole(enter(cuts_.tp, ops::contiguous(x)).wait());
}

std::int64_t PartOfTokens::seen(const Pass& pass, std::int64_t length) const {
  return pass.training() ? tokens_kept(drop_, std::int64_t(pass.place().step), length) : length;
}

PartOfTokens::Places PartOfTokens::draw(const Pass& pass, std::int64_t length, std::int64_t kept) const {
  Address at = pass.address(Purpose::token_drop, layer_);
  Places places;
  for (const std::int64_t number : pass.batch().sample_numbers) {
    at.sample = std::uint64_t(number);
    places.push_back(drawn_places(at, length, kept));
  }
  return places;
}

/// What the block reads of the samples: those tokens are all there is.
Batch PartOfTokens::batch_of(const Batch& batch, const Places& places) const {
  Device& device = batch.samples.device();
  const auto b = std::int64_t(places.size());
  const std::vector<std::int64_t> here = steps_here(std::ssize(places[0]), cuts_.context);
  std::vector<std::int32_t> rows, order;
  for (const std::int64_t step : here) {
    order.push_back(std::int32_t(step));
    for (std::int64_t j = 0; j < b; ++j)
      rows.push_back(std::int32_t(places[std::size_t(j)][std::size_t(step)] * b + j));
  }
  const Tensor index = from_host(device, {std::ssize(rows)}, rows);
  const auto k = std::int64_t(here.size());
  Batch seen = batch;
  Sequences& text = seen.text;
  text.positions = picked(cuts_.context.whole(text.positions), index).view({k, b});
  text.restarted = true;
  if (text.segments) {
    const Tensor whole = cuts_.context.whole(ops::contiguous(text.segments.permute({1, 0})));
    text.segments = ops::contiguous(picked(whole, index).view({k, b}).permute({1, 0}));
  }
  text.places = from_host(device, {k}, order);
  return seen;
}

PartOfTokens::Chosen PartOfTokens::choose(const Pass& pass, std::int64_t length, std::int64_t kept) const {
  Device& device = pass.batch().samples.device();
  const Places places = draw(pass, length, kept);
  const auto b = std::int64_t(places.size());
  std::vector<std::int32_t> rows, home;
  for (const std::int64_t step : part_here(steps_here(kept, cuts_.context), cuts_.tp))
    for (std::int64_t j = 0; j < b; ++j)
      rows.push_back(std::int32_t(places[std::size_t(j)][std::size_t(step)] * b + j));
  const std::vector<std::int64_t> outer = part_here(steps_here(length, cuts_.context), cuts_.tp);
  const auto mine = std::int64_t(outer.size()) * b;
  for (const std::int64_t step : outer)
    for (std::int64_t j = 0; j < b; ++j) {
      const auto& of_sample = places[std::size_t(j)];
      const auto at = std::ranges::lower_bound(of_sample, std::int32_t(step));
      const bool chosen = at != of_sample.end() && *at == step;
      home.push_back(std::int32_t(chosen ? mine + (at - of_sample.begin()) * b + j : std::ssize(home)));
    }
  return {.seen = batch_of(pass.batch(), places),
          .rows = from_host(device, {std::ssize(rows)}, rows),
          .home = from_host(device, {mine}, home)};
}

Flow PartOfTokens::forward(Pass& pass, const Flow& x) {
  const std::int64_t length = whole(x.hidden.dim(0)), kept = seen(pass, length);
  if (kept == length) return inner_->forward(pass, x);
  Chosen chosen = choose(pass, length, kept);
  Flow some = x;
  some.hidden = taken(together(x.hidden), chosen.rows);
  {
    const Reading reading(pass, chosen.seen);
    some = inner_->forward(pass, some);
  }
  some.hidden = put_back(x.hidden, together(some.hidden), chosen.home);
  pass.save(std::move(chosen));
  return some;
}

Flow PartOfTokens::backward(Pass& pass, const Flow& dy) {
  const std::int64_t length = whole(dy.hidden.dim(0));
  if (seen(pass, length) == length) return inner_->backward(pass, dy);
  const Chosen chosen = pass.take<Chosen>();
  Flow some = dy;
  some.hidden = taken(together(dy.hidden), chosen.rows);
  some.rounded = {};
  {
    const Reading reading(pass, chosen.seen);
    some = inner_->backward(pass, some);
  }
  some.hidden = put_back(dy.hidden, together(some.hidden), chosen.home);
  some.rounded = {};
  return some;
}

}  // namespace weft
