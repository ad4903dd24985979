// How many samples a run asks of each split.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace weft::data {

/// The flags that decide it.
struct RunLength {
  std::int64_t train_iterations = 0;
  std::optional<std::int64_t> train_samples = {};
  std::int64_t global_batch = 1;
  std::optional<std::int64_t> eval_global_batch = {};  // nothing: the same
  std::int64_t eval_iterations = 100;
  std::optional<std::int64_t> eval_interval = {};  // nothing: no evaluation but the last
  std::int64_t start_eval_at = 0;
  bool skip_train = false;
  bool full_validation = false;
};

/// Train, valid, test; nothing for one whole epoch.
std::array<std::optional<std::int64_t>, 3> sample_counts(const RunLength& run);

/// Samples of the validation split that a run has used when it stands at an iteration.
std::int64_t consumed_valid_samples(const RunLength& run, std::int64_t iteration);

}  // namespace weft::data
