#include "weft/train/reruns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace weft {

double relative_difference(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  if (!std::isfinite(a) || !std::isfinite(b)) return std::numeric_limits<double>::infinity();
  return 2 * std::abs(a - b) / std::abs(a + b);
}

void Variability::add(double difference) {
  if (difference == 0) {
    ++identical_;
    return;
  }
  if (kept_.size() < most_kept)
    kept_.push_back(difference);
  else
    kept_[std::size_t(differ_) % most_kept] = difference;
  ++differ_;
  most_ = std::max(most_, difference);
}

double Variability::quantile(const std::vector<double>& sorted, double part) const {
  const auto place = std::int64_t(part * double(identical_ + std::ssize(sorted))) - identical_;
  return place < 0 ? 0 : sorted[std::size_t(place)];
}

// Megatron's words, which scripts may look for.
std::string Variability::told() const {
  if (kept_.empty()) return fmt::format("{} samples, all identical", identical_);
  std::vector<double> sorted = kept_;
  std::ranges::sort(sorted);
  const std::int64_t all = identical_ + std::ssize(sorted);
  return fmt::format(
      "{}/{} total/identical samples, rel. variability: avg= {:.3E}, p50= {:.3E}, p90= {:.3E}, p99= {:.3E}, "
      "p99.9= {:.3E}, max: {:.3E}",
      all, identical_, std::accumulate(sorted.begin(), sorted.end(), 0.0) / double(all),
      quantile(sorted, 0.5), quantile(sorted, 0.9), quantile(sorted, 0.99), quantile(sorted, 0.999), most_);
}

RerunStatistics::RerunStatistics(std::vector<std::string> losses) : names_(std::move(losses)) {
  names_.emplace_back("grad norm");
  of_.resize(names_.size());
}

void RerunStatistics::add(const RerunDifferences& differences) {
  for (std::size_t i = 0; i < differences.losses.size(); ++i) of_[i].add(differences.losses[i]);
  of_.back().add(differences.grad_norm);
  empty_ = false;
}

std::string RerunStatistics::told() const {
  std::string lines = "Stats on computation determinism in validation calls";
  for (std::size_t i = 0; i < names_.size(); ++i)
    lines += fmt::format("\n  From {}:\n    {}", names_[i], of_[i].told());
  return lines;
}

}  // namespace weft
