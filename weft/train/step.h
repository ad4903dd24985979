// What a step is told, and what there is to say about it.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "weft/optim/rate.h"
#include "weft/train/losses.h"
#include "weft/train/reruns.h"
#include "weft/train/timers.h"

namespace weft {

class RoutingTable;

struct StepReport {
  ByLoss<double> losses;  // each the mean that its family says (LossMean)
  double tokens = 0;      // that count, of the global batch
  double grad_norm = 0;
  std::optional<std::int64_t> zeros;
  std::optional<double> params_norm;
  /// Of attention, where somebody looks; inf where one is no number, -inf where nothing attends.
  std::optional<double> greatest_score;
  const RoutingTable* routing = nullptr;       // the replica's, until its next step; null without experts
  double loss_scale = 1, next_loss_scale = 1;  // of this step, and of the one behind it
  bool applied = true;      // false: something was not finite, and the weights are what they were
  bool loss_finite = true;  // the losses themselves were numbers
  /// So were all scores, where weights follow them: one that is none comes to the gradient, as a rule.
  bool scores_finite = true;
  bool too_large = false;   // a loss that the order did not want to see at once: nothing was updated
  bool as_expected = true;  // false: not what the order expected, so nothing was updated
  std::optional<RerunDifferences> differs;  // from a computation before; none where there was none

  /// The first of them, by which a run is judged.
  double loss() const { return losses.empty() ? 0 : losses[0]; }
};

/// The first number that was not finite, and whose; rank -1: all ranks' together.
struct NotFiniteAt {
  std::string where;
  int rank = -1;
};

/// What differs from step to step.
struct StepOrder {
  std::uint64_t seed = 0;
  std::int64_t step = 0;  // counts from 1
  double rate = 0, ends_rate = 0, decay = 0;
  std::optional<Betas> betas;  // in place of the optimizer's own
  double width_rate = 0;       // of weights whose pace follows the model's width
  double clip = 0;
  bool per_token = false;  // the objective is a mean over the tokens of the global batch
  int together = 1;  // so many microbatches in a row share one mean, where they are parts of what was asked
  bool count_zeros = false, params_norm = false;
  bool fault = false;      // the loss is taken for not finite: to see what a run does then
  bool only_look = false;  // computes, and updates nothing
  double most_loss = std::numeric_limits<double>::infinity();  // above it nothing is updated
  const StepReport* expected =
      nullptr;  // updates only where loss and gradient norm have these bits; null: always
  StepTimers* timers = nullptr;
};

}  // namespace weft
