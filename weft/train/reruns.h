// How far two computations of one step differ, gathered over a run and told as Megatron's rerun machine does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/train/losses.h"

namespace weft {

/// Of a step that was computed twice, by relative_difference().
struct RerunDifferences {
  ByLoss<double> losses;
  double grad_norm = 0;
};

/// 2 |a - b| / |a + b|. What is no number equals another such, and is infinitely far from a number.
double relative_difference(double a, double b);

/// How such differences are spread; those of 0 are counted, and of the others the last hundred thousand are
/// kept.
class Variability {
 public:
  static constexpr std::size_t most_kept = 100000;
  void add(double difference);
  /// "8 samples, all identical", or mean, quantiles and the greatest.
  std::string told() const;

 private:
  /// The smallest difference that this part of all is below, of `sorted` ones and those of 0.
  double quantile(const std::vector<double>& sorted, double part) const;

  std::vector<double> kept_;  // none of them 0
  std::int64_t identical_ = 0, differ_ = 0;
  double most_ = 0;
};

/// Of every loss, and of the gradient's norm.
class RerunStatistics {
 public:
  explicit RerunStatistics(std::vector<std::string> losses);
  void add(const RerunDifferences& differences);
  bool empty() const { return empty_; }
  std::string told() const;

 private:
  std::vector<std::string> names_;
  std::vector<Variability> of_;
  bool empty_ = true;
};

}  // namespace weft
