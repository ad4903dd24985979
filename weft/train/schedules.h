// Learning rate and weight decay of a run, made from its configuration.
#pragma once

#include "weft/optim/rate.h"
#include "weft/train/config.h"

namespace weft {

/// What a run has learned from: samples, and what of them it read.
struct Learned {
  std::int64_t samples = 0, tokens = 0;
};

/// A schedule whose unit may be the token: `unit` of them make a whole sample.
struct RatePlan {
  RateSchedule schedule;
  std::int64_t unit = 1;
  double at(const Learned& from) const { return schedule.at(unit == 1 ? from.samples : from.tokens); }
  /// Of whole samples.
  double at(std::int64_t samples) const { return schedule.at(samples * unit); }
  std::optional<Betas> betas_at(const Learned& from) const {
    return schedule.betas_at(unit == 1 ? from.samples : from.tokens);
  }
};

/// What lengths are told in. Megatron counts in samples: steps become samples at the full global batch.
struct RunUnits {
  std::int64_t samples = 0;  // of the whole run
  std::int64_t batch = 0, sequence = 0;
};
RatePlan rate_plan(const RateConfig&, const RunUnits&);
/// The same with other rates; where warm-up begins is not among them.
RatePlan scaled(RatePlan plan, double factor);
/// By what the rate of weights that learn by the model's width is scaled: matrices under adam, all else under
/// sgd.
double width_factor(OptimizerKind, double width);
/// Of the embedding and the output layer: the usual one by a factor, where they have none of their own.
RatePlan embedding_rate_plan(const RateConfig&, const RunUnits&, double factor);
DecaySchedule decay_plan(const OptimizerConfig&, std::int64_t samples);

}  // namespace weft
