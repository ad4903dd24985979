// Losses on sets that nobody trains on.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "weft/train/feed.h"
#include "weft/train/lent.h"
#include "weft/train/progress.h"
#include "weft/train/replica.h"
#include "weft/train/run_data.h"

namespace weft {

/// What of a run's settings evaluations go by.
struct EvaluationSettings {
  EvalConfig eval;
  DataConfig data;
  data::SampleTurn turn;
  int together = 1;  // microbatches in a row that share one mean
  /// Asked between batches, by all ranks alike: why the run must stop, of which one reason may be that this
  /// rank cannot read the next batch.
  std::function<std::optional<Ending>(std::exception_ptr unreadable)> must_stop;
};

class Evaluator {
 public:
  Evaluator(EvaluationSettings settings, const data::Datasets& sets, const Lent& lent, Replica& replica,
            Progress& progress);
  /// All sets of a split after a step, told as `of`; false where it was broken off, as the run must stop.
  struct When {
    std::int64_t step = 0, consumed = 0;
  };
  bool evaluate(const When& when, data::Split split, const std::string& of);

 private:
  bool evaluate_set(const std::shared_ptr<const data::Dataset>& given, std::int64_t& consumed,
                    report::Evaluation& into);
  std::optional<Evaluation> evaluated(Feed& feed, std::int64_t rounds);
  std::string name_of_set(data::Split split, std::size_t number) const;

  EvaluationSettings settings_;
  const data::Datasets& sets_;
  Lent lent_;
  Replica& replica_;
  Progress& progress_;
};

}  // namespace weft
