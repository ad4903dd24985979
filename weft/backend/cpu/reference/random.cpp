// What is random: addressed numbers, and dropout, which compares them with a threshold.
#include "weft/backend/cpu/reference/dropped.h"
#include "weft/backend/cpu/reference/kernels.h"
#include "weft/backend/cpu/reference/rows.h"

namespace weft {
namespace reference {

Dropped::Dropped(const DropoutArgs& how)
    : how_(how), threshold_(share(how.probability)), factor_(1 / (1 - double(how.probability))) {
  if (how.probability == 0) return;
  for (const std::int64_t sample : how.samples.as<std::int64_t>()) {
    Address at = how.at;
    at.sample = std::uint64_t(sample);
    draws_.emplace_back(at);
  }
  positions_ = reference::load(how.positions);
}

void Dropped::apply(std::int64_t number, std::span<double> row) const {
  if (how_.probability == 0) return;
  const auto batch = std::int64_t(draws_.size());
  const Draw& draw = draws_[std::size_t(number % batch)];
  const auto position = std::int64_t(positions_[std::size_t(number / batch)]);
  const std::int64_t first = position * how_.width + how_.channel;
  for (std::size_t j = 0; j < row.size(); ++j) {
    const bool kept = draw.word(std::uint64_t(first) + j) >= threshold_;
    row[j] = kept ? row[j] * factor_ : 0;
  }
}

}  // namespace reference

using reference::Dropped;
using reference::LoadedRows;

namespace {

/// out[i, j] = f(element's number)
template <class F>
void by_place(const Tensor& out, const RandomBlock& block, F f) {
  const LoadedRows rows(out);
  std::vector<double> row(std::size_t(rows.width()));
  for (std::int64_t i = 0; i < rows.count(); ++i) {
    const std::int64_t first = (block.row + i) * block.columns + block.column;
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = f(std::uint64_t(first) + j);
    rows.store(i, row);
  }
}

}  // namespace

void ReferenceKernels::dropout(const Tensor& y, const Tensor& x, const DropoutArgs& how) {
  called();
  const Dropped dropped(how);
  const LoadedRows to(y);
  const LoadedRows from(x);
  for (std::int64_t i = 0; i < to.count(); ++i) {
    std::vector<double> row = from.load(i);
    dropped.apply(i, row);
    to.store(i, row);
  }
}

void ReferenceKernels::bias_dropout_add(const Tensor& out, const Tensor& x, const Tensor& bias,
                                        const Tensor& residual, const DropoutArgs& how) {
  called();
  const Dropped dropped(how);
  const LoadedRows to(out);
  const LoadedRows from(x);
  const LoadedRows old(residual);
  const std::vector<double> more = reference::load_or_zeros(bias, to.width());
  for (std::int64_t i = 0; i < to.count(); ++i) {
    std::vector<double> row = from.load(i);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] += more[j];
    dropped.apply(i, row);
    const std::vector<double> stream = old.load(i);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] += stream[j];
    to.store(i, row);
  }
}

void ReferenceKernels::random_normal(const Tensor& out, float mean, float deviation,
                                     const RandomBlock& block) {
  called();
  const Draw draw(block.at);
  // In f32, so that every backend can give the same bits.
  by_place(out, block,
           [&](std::uint64_t element) { return double(mean + deviation * draw.normal(element)); });
}

void ReferenceKernels::random_uniform(const Tensor& out, float low, float high, const RandomBlock& block) {
  called();
  const Draw draw(block.at);
  by_place(out, block,
           [&](std::uint64_t element) { return double(low + (high - low) * draw.uniform(element)); });
}

}  // namespace weft
