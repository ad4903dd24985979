// Which samples the steps of a run draw, one step after the other: DeepSpeed's clusters, and its generator.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "weft/data/difficulty.h"
#include "weft/data/number_rows.h"
#include "weft/data/numpy_random.h"

namespace weft::data {

/// A metric with its files open.
struct OpenMetric {
  DifficultyMetric metric;
  Lengths difficulties;
  std::optional<NumberRows> samples, values;  // of a metric that makes clusters; values where it goes by them

  explicit OpenMetric(const DifficultyMetric& metric);
  /// The samples that are harder than `before` and as hard as `now` at most, in the order of the index;
  /// before nothing, all are harder.
  std::vector<std::uint32_t> between(std::optional<std::int64_t> before, std::int64_t now) const;

 private:
  std::vector<std::uint32_t> by_value(std::optional<std::int64_t> before, std::int64_t now) const;
  std::vector<std::uint32_t> by_share(std::int64_t before, std::int64_t now) const;
};

class DifficultyClusters {
 public:
  /// Of a set of so many samples; every number in an index is looked at.
  DifficultyClusters(std::vector<OpenMetric> metrics, std::int64_t samples, std::uint32_t seed);
  /// The batch of the next step, the first being 1.
  std::vector<std::int64_t> next(std::int64_t batch);
  std::int64_t steps() const { return step_; }
  void begin_anew();

 private:
  using Numbers = std::vector<std::uint32_t>;
  struct Cluster {
    Numbers samples;
    std::size_t at = 0;  // the next one
  };
  void admit(const std::vector<std::optional<std::int64_t>>& before);
  Numbers admitted(const std::vector<std::optional<std::int64_t>>& before) const;
  Numbers admitted_by_all() const;
  std::vector<std::int64_t> shares_of(std::int64_t batch);
  void take(Cluster& cluster, std::int64_t count, std::vector<std::int64_t>& into);

  std::vector<OpenMetric> metrics_;
  std::int64_t samples_;
  std::uint32_t seed_;
  NumpyPcg64 random_;
  std::int64_t step_ = 0;
  std::vector<std::optional<std::int64_t>> now_;  // of each metric
  std::vector<Cluster> clusters_;
};

}  // namespace weft::data
