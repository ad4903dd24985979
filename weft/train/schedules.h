// Learning rate and weight decay of a run, made from its configuration.
#pragma once

#include "weft/optim/rate.h"
#include "weft/train/config.h"

namespace weft {

/// A schedule whose unit may be the token: `unit` of them make a sample.
struct RatePlan {
  RateSchedule schedule;
  std::int64_t unit = 1;
  double at(std::int64_t samples) const { return schedule.at(samples * unit); }
};

/// `steps` is the length of the run. Megatron counts in samples: steps become samples at the full global
/// batch.
RatePlan rate_plan(const TrainConfig&, std::int64_t steps);
/// The same with other rates; where warm-up begins is not among them.
RatePlan scaled(RatePlan plan, double factor);
/// By what the rate of weights that learn by the model's width is scaled: matrices under adam, all else under
/// sgd.
double width_factor(const TrainConfig&);
/// Of the embedding and the output layer.
RatePlan embedding_rate_plan(const TrainConfig&, std::int64_t steps);
DecaySchedule decay_plan(const TrainConfig&, std::int64_t steps);

}  // namespace weft
