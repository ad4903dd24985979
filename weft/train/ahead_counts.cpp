#include "weft/train/ahead_counts.h"

#include <algorithm>

#include "weft/ops/elementwise.h"
#include "weft/ops/reduce.h"
#include "weft/tensor/host.h"

namespace weft {

void AheadCounts::ask(std::span<const Batch> microbatches, Communicator& context) {
  const auto slots = std::ssize(microbatches) * std::int64_t{depths_};
  const Tensor sums = ops::zeros(microbatches.front().mask.device(), {slots}, Dtype::f64);
  std::int64_t slot = 0;
  for (const Batch& batch : microbatches)
    for (int k = 0; k < depths_; ++k)
      ops::copy_into(sums.slice(0, slot++, 1), ops::sum(batch.further[std::size_t(k)].mask));
  context.all_reduce(sums, Reduce::sum).wait();
  const std::vector<double> all = to_host<double>(sums);
  auto sum = all.begin();
  for (ByDepth& counted : counted_)
    for (int k = 0; k < depths_; ++k) counted[std::size_t(k)] = *sum++;
}

void AheadCounts::count(std::span<const Batch> microbatches, int depths, Communicator& context) {
  depths_ = depths;
  if (depths == 0) return;
  counted_.assign(microbatches.size(), {});
  for (std::size_t i = 0; i < microbatches.size(); ++i) {
    const Batch& batch = microbatches[i];
    if (!batch.counted) return ask(microbatches, context);
    for (std::size_t k = 0; k < std::size_t(depths); ++k) counted_[i][k] = batch.further[k].counted;
  }
}

AheadCounts::Both AheadCounts::counts_of(std::span<const double> counts, std::size_t microbatch, int together,
                                         int depth) const {
  const auto row = std::size_t(std::max(together, 1));
  const std::size_t from = microbatch / row * row;
  Both out;
  for (std::size_t i = from; i < from + row; ++i) {
    out.next += counts[i];
    out.ahead += counted_[i][std::size_t(depth) - 1];
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
