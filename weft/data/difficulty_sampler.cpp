// A step is found by replaying those before it; the last ones are kept, as ranks and the step that is done
// again ask for them.
#include <deque>
#include <utility>

#include "weft/base/error.h"
#include "weft/data/difficulty.h"
#include "weft/data/difficulty_clusters.h"

namespace weft::data {
namespace {

class ByDifficulty final : public Sampler {
 public:
  explicit ByDifficulty(DifficultyClusters clusters) : clusters_(std::move(clusters)) {}

  void list(std::int64_t consumed, const SampleTurn& turn, std::vector<std::int64_t>& into) const override {
    check(turn);
    const std::vector<std::int64_t>& batch = batch_at(consumed, turn.global_batch);
    each_place(turn, [&](std::int64_t, std::int64_t, std::int64_t place) {
      into.push_back(batch[std::size_t(place)]);
    });
  }

 private:
  static constexpr std::size_t most_kept = 4;

  const std::vector<std::int64_t>& batch_at(std::int64_t consumed, std::int64_t batch) const {
    if (consumed % batch != 0)
      fail(Kind::usage, "samples by difficulty: ", consumed,
           " samples were read, no whole number of batches of ", batch,
           ": a run by difficulty has one {batch.global} from its start");
    const std::int64_t step = consumed / batch + 1;
    const std::int64_t first = clusters_.steps() - std::int64_t(kept_.size()) + 1;
    if (batch != batch_ || step < first) {
      clusters_.begin_anew();
      kept_.clear();
      batch_ = batch;
    }
    while (clusters_.steps() < step) {
      kept_.push_back(clusters_.next(batch));
      if (kept_.size() > most_kept) kept_.pop_front();
    }
    return kept_[kept_.size() - 1 - std::size_t(clusters_.steps() - step)];
  }

  mutable DifficultyClusters clusters_;
  mutable std::deque<std::vector<std::int64_t>> kept_;  // of the last steps
  mutable std::int64_t batch_ = 0;
};

}  // namespace

std::unique_ptr<Sampler> difficulty_sampler(const DifficultyRule& rule, std::int64_t total) {
  std::vector<OpenMetric> open;
  for (const DifficultyMetric& metric : rule.metrics) open.emplace_back(metric);
  return std::make_unique<ByDifficulty>(DifficultyClusters(std::move(open), total, rule.seed));
}

}  // namespace weft::data
