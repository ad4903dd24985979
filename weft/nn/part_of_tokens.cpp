// Rows move by an index that the host draws; what goes by samples is read through a batch of those tokens.
#include "weft/nn/part_of_tokens.h"

#include <numeric>

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

/// x [s, b, h] -> [k, b, h]
Tensor taken(const Tensor& x, const Tensor& rows) {
  const std::int64_t b = x.dim(1), h = x.dim(2);
  return ops::gather_rows(ops::contiguous(x).view({x.dim(0) * b, h}), rows).view({rows.dim(0) / b, b, h});
}

/// x [s, b, h], and y [k, b, h] in the place of the rows that were taken
Tensor put_back(const Tensor& x, const Tensor& y, const Tensor& home) {
  const std::int64_t h = x.dim(2), rows = x.elements() / h, more = y.elements() / h;
  const Tensor all = empty(x.device(), {rows + more, h}, x.dtype());
  ops::copy_into(all.slice(0, 0, rows), ops::contiguous(x).view({rows, h}));
  ops::copy_into(all.slice(0, rows, more), ops::contiguous(y).view({more, h}));
  return ops::gather_rows(all, home).view(x.shape());
}

}  // namespace

std::int64_t PartOfTokens::seen(const Pass& pass, std::int64_t length) const {
  return pass.training() ? tokens_kept(drop_, std::int64_t(pass.place().step), length) : length;
}

PartOfTokens::Chosen PartOfTokens::choose(const Pass& pass, std::int64_t length, std::int64_t kept) const {
  const Batch& batch = pass.batch();
  Device& device = batch.samples.device();
  const std::vector<std::int64_t>& numbers = batch.sample_numbers;
  const auto b = std::int64_t(numbers.size());
  std::vector<std::int32_t> rows(std::size_t(kept * b)), by_sample(rows.size()),
      home(std::size_t(length * b));
  std::iota(home.begin(), home.end(), 0);
  Address at = pass.address(Purpose::token_drop, layer_);
  for (std::int64_t j = 0; j < b; ++j) {
    at.sample = std::uint64_t(numbers[std::size_t(j)]);
    const std::vector<std::int32_t> places = drawn_places(at, length, kept);
    for (std::int64_t i = 0; i < kept; ++i) {
      const std::int64_t row = places[std::size_t(i)] * b + j, here = i * b + j;
      rows[std::size_t(here)] = std::int32_t(row);
      by_sample[std::size_t(j * kept + i)] = std::int32_t(j * length + places[std::size_t(i)]);
      home[std::size_t(row)] = std::int32_t(length * b + here);
    }
  }
  Chosen out{.seen = batch,
             .rows = from_host(device, {kept * b}, rows),
             .home = from_host(device, {length * b}, home)};
  Sequences& text = out.seen.text;
  text.positions = picked(batch.text.positions, out.rows).view({kept, b});
  text.restarted = true;
  if (text.segments)
    text.segments = picked(text.segments, from_host(device, {kept * b}, by_sample)).view({b, kept});
  text.places = text.places.slice(0, 0, kept);
  return out;
}

Flow PartOfTokens::forward(Pass& pass, const Flow& x) {
  const std::int64_t length = x.hidden.dim(0), kept = seen(pass, length);
  if (kept == length) return inner_->forward(pass, x);
  Chosen chosen = choose(pass, length, kept);
  Flow some = x;
  some.hidden = taken(x.hidden, chosen.rows);
  {
    const Reading reading(pass, chosen.seen);
    some = inner_->forward(pass, some);
  }
  some.hidden = put_back(x.hidden, some.hidden, chosen.home);
  pass.save(std::move(chosen));
  return some;
}

Flow PartOfTokens::backward(Pass& pass, const Flow& dy) {
  const std::int64_t length = dy.hidden.dim(0);
  if (seen(pass, length) == length) return inner_->backward(pass, dy);
  const Chosen chosen = pass.take<Chosen>();
  Flow some = dy;
  some.hidden = taken(dy.hidden, chosen.rows);
  {
    const Reading reading(pass, chosen.seen);
    some = inner_->backward(pass, some);
  }
  some.hidden = put_back(dy.hidden, some.hidden, chosen.home);
  return some;
}

}  // namespace weft
