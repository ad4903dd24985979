// One optimizer step: microbatches in, new weights out, and what there is to say about it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/mesh/mesh.h"
#include "weft/optim/grad_reduction.h"
#include "weft/optim/norms.h"
#include "weft/optim/optimizer.h"
#include "weft/optim/scaler.h"
#include "weft/optim/tied.h"
#include "weft/pipe/runner.h"
#include "weft/train/timers.h"

namespace weft {

/// What every stage hands on, a row a token: [s (/tp), b, width].
struct Wire {
  std::int64_t width = 0;
  Dtype dtype = Dtype::f32;
  Between between = Between::whole;
};

/// A number a microbatch, kept from step to step.
struct StepRoom {
  std::vector<double> counts;
  std::vector<float> factors;
};

/// What a step works on: this rank's stages and what goes with them.
struct Workshop {
  const std::map<int, Stage>& stages;
  Weights& weights;
  GradReduction& reduction;
  Optimizer& optimizer;
  pipe::Runner& runner;
  const ProcessMesh& mesh;
  Wire wire;
  LossScaler* scaler = nullptr;       // f16 only
  const TiedWeights* tied = nullptr;  // where a weight lives on two stages
  StepRoom* room = nullptr;           // with it, the steady state asks the heap for nothing
};

/// What differs from step to step.
struct StepOrder {
  std::uint64_t seed = 0;
  std::int64_t step = 0;  // counts from 1
  double rate = 0, ends_rate = 0, decay = 0;
  double clip = 0;
  bool per_token = false;  // the objective is a mean over the tokens of the global batch
  int together = 1;  // so many microbatches in a row share one mean, where they are parts of what was asked
  bool count_zeros = false, params_norm = false;
  StepTimers* timers = nullptr;
};

struct StepReport {
  double loss = 0;  // mean over the counting tokens of the global batch
  double tokens = 0;
  double grad_norm = 0;
  std::optional<std::int64_t> zeros;
  std::optional<double> params_norm;
  double loss_scale = 1;
  bool applied = true;      // false: something was not finite, and the weights are what they were
  bool loss_finite = true;  // the loss itself was a number
};

/// Runs all of it. A loss or gradient that is not finite leaves the weights alone; the report says so.
StepReport train_step(const Workshop& shop, std::span<const Batch> microbatches, const StepOrder& order);

struct Evaluation {
  double loss_sum = 0, tokens = 0;
};
/// Forward only; adds to the sums.
void evaluate_step(const Workshop& shop, std::span<const Batch> microbatches, Evaluation& into);

/// The rank along the pipeline that knows the losses.
int last_home(const Workshop& shop);
/// What travels between stages for microbatches like this one.
pipe::Parcel parcel_of(const Workshop& shop, const Batch& batch);

/// After a step that was not applied: does it again with open eyes. "first seen after attention of layer 3,
/// samples 17, 18" or "in the gradient of layers.3.mlp.up.weight, samples 17, 18"; all ranks say the same.
std::string find_not_finite(const Workshop& shop, std::span<const Batch> microbatches,
                            const StepOrder& order);

}  // namespace weft
