#include "weft/data/counts.h"

#include <algorithm>

#include "weft/base/error.h"

namespace weft::data {
namespace {

std::int64_t evaluation_batch(const RunLength& run) {
  return run.eval_iterations * run.eval_global_batch.value_or(run.global_batch);
}

// Without an interval nothing is evaluated along the way; the one at the end remains.
std::int64_t rounds(const RunLength& run, std::int64_t iteration) {
  if (!run.eval_interval) return 0;
  if (*run.eval_interval < 1)
    fail(Kind::usage, "{eval.interval} ", *run.eval_interval, ": expected at least 1");
  return iteration / *run.eval_interval - run.start_eval_at / *run.eval_interval;
}

}  // namespace

std::array<std::optional<std::int64_t>, 3> sample_counts(const RunLength& run) {
  const std::int64_t train = run.train_samples.value_or(run.train_iterations * run.global_batch);
  std::optional<std::int64_t> valid;
  if (run.skip_train) {
    valid = evaluation_batch(run);
  } else if (!run.full_validation) {
    valid = std::max<std::int64_t>(0, rounds(run, run.train_iterations) + 1) * evaluation_batch(run);
  }
  return {train, valid, evaluation_batch(run)};
}

std::int64_t consumed_valid_samples(const RunLength& run, std::int64_t iteration) {
  if (run.skip_train || run.full_validation) return 0;
  return std::max<std::int64_t>(0, rounds(run, iteration)) * evaluation_batch(run);
}

}  // namespace weft::data
