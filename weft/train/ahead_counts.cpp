#include "weft/train/ahead_counts.h"

#include <algorithm>

#include "weft/ops/elementwise.h"
#include "weft/ops/reduce.h"
#include "weft/tensor/host.h"

namespace weft {
namespace {

/// Rows of a sequence's part that lie before `place` in the whole, in each of its two chunks; a whole
/// sequence is one.
struct RowsBefore {
  std::int64_t chunk, first, second;
};
RowsBefore rows_before(std::int64_t place, std::int64_t steps, const Communicator& context) {
  const std::int64_t ranks = context.size(), rank = context.rank();
  if (ranks == 1) return {steps, std::min(place, steps), 0};
  const std::int64_t chunk = steps / 2;
  const auto here = [&](std::int64_t start) { return std::clamp(place - start, std::int64_t{0}, chunk); };
  return {chunk, here(rank * chunk), here((2 * ranks - 1 - rank) * chunk)};
}

}  // namespace

void AheadCounts::ask(std::span<const Batch> microbatches, Communicator& context) {
  const std::int64_t many = std::ssize(microbatches);
  constexpr std::int64_t slots = 2 * std::int64_t{most_ahead};  // of a microbatch, for both of its chunks
  const Tensor sums = ops::zeros(microbatches.front().mask.device(), {many * slots}, Dtype::f64);
  for (std::int64_t i = 0; i < many; ++i)
    for (int k = 1; k <= depths_; ++k) {
      const Tensor& mask = microbatches[std::size_t(i)].mask;
      const auto [chunk, first, second] = rows_before(k, mask.dim(0), context);
      const std::int64_t slot = i * slots + 2 * std::int64_t{k - 1};
      if (first > 0) ops::copy_into(sums.slice(0, slot, 1), ops::sum(mask.slice(0, 0, first)));
      if (second > 0) ops::copy_into(sums.slice(0, slot + 1, 1), ops::sum(mask.slice(0, chunk, second)));
    }
  context.all_reduce(sums, Reduce::sum).wait();
  const std::vector<double> all = to_host<double>(sums);
  for (std::size_t i = 0; i < lost_.size(); ++i)
    for (std::size_t k = 0; k < most_ahead; ++k)
      lost_[i][k] = all[i * std::size_t(slots) + 2 * k] + all[i * std::size_t(slots) + 2 * k + 1];
}

void AheadCounts::count(std::span<const Batch> microbatches, int depths, Communicator& context) {
  depths_ = depths;
  if (depths == 0) return;
  lost_.assign(microbatches.size(), {});
  for (std::size_t i = 0; i < microbatches.size(); ++i) {
    const Batch& batch = microbatches[i];
    if (!batch.counted) return ask(microbatches, context);
    double sum = 0;
    for (std::size_t k = 0; k < most_ahead; ++k) lost_[i][k] = sum += batch.counted_first[k];
  }
}

AheadCounts::Both AheadCounts::counts_of(std::span<const double> counts, std::size_t microbatch, int together,
                                         int depth) const {
  const auto row = std::size_t(std::max(together, 1));
  const std::size_t from = microbatch / row * row;
  Both out;
  for (std::size_t i = from; i < from + row; ++i) {
    out.next += counts[i];
    out.ahead += counts[i] - lost_[i][std::size_t(depth) - 1];
  }
  return out;
}

void AheadCounts::weigh(std::span<LossFactors> factors, std::span<const double> counts, int together) const {
  for (std::size_t i = 0; i < factors.size(); ++i)
    for (int k = 1; k <= depths_; ++k) {
      const auto [next, ahead] = counts_of(counts, i, together, k);
      factors[i].ahead[std::size_t(k) - 1] = ahead > 0 ? float(double(factors[i].token) * next / ahead) : 0;
    }
}

void AheadCounts::share(std::span<const double> counts, int together) {
  if (depths_ == 0) return;
  shares_.assign(counts.size(), {});
  for (std::size_t i = 0; i < counts.size(); ++i)
    for (int k = 1; k <= depths_; ++k) {
      const auto [next, ahead] = counts_of(counts, i, together, k);
      shares_[i][std::size_t(k) - 1] = ahead > 0 ? float((together > 0 ? 1 : next) / ahead) : 0;
    }
}

}  // namespace weft
