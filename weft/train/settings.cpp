#include "weft/train/settings.h"

#include <algorithm>

#include "weft/data/split.h"
#include "weft/mesh/samples.h"
#include "weft/model/count.h"
#include "weft/model/experts.h"
#include "weft/model/layer_parts.h"
#include "weft/train/ranks.h"
#include "weft/train/run_data.h"
#include "weft/train/stages.h"

namespace weft {
namespace {

std::int64_t samples_of_run(const TrainConfig& config, std::int64_t steps) {
  return config.length.samples > 0 ? config.length.samples : steps * config.batch.global;
}

/// Of one of the model's layers: what a second one like it adds.
double layer_flops(const ModelConfig& model, int layer, std::int64_t length) {
  const auto of = [&](int layers) { return training_flops(layers_alike(model, layer, layers), length); };
  return of(2) - of(1);
}

/// Of the layers that a step goes through, and the tokens that they see.
double flops_of_sample(const ModelConfig& model, std::uint64_t seed, std::int64_t step, std::int64_t length) {
  const LayerDrop& layers = model.layer_drop;
  const TokenDrop& tokens = model.token_drop;
  if (!layers.on() && !tokens.on()) return training_flops(model, length);
  double flops = training_flops(model, length);
  for (int layer = 0; layer < model.layers; ++layer)
    if (weight_of_layer(layers, seed, step, {layer, model.layers}) == 0)
      flops -= layer_flops(model, layer, length);
    else if (tokens.at(layer))
      flops -=
          layer_flops(model, layer, length) - layer_flops(model, layer, tokens_kept(tokens, step, length));
  return flops;
}

}  // namespace

BatchSchedule batch_schedule(const TrainConfig& config) {
  return {config.batch, sample_ranks(config.parallel), config.model.sequence};
}

Curriculum curriculum_of(const TrainConfig& config) {
  return {config.curriculum, config.model.sequence,
          std::max<std::int64_t>(rows_of_a_pass(config.model, config.batch), 1), config.model.token_drop,
          config.model.layers};
}

RunLength run_length(const TrainConfig& config) {
  BatchSchedule batches = batch_schedule(config);
  const std::int64_t steps = steps_of(config.length, curriculum_of(config), batches);
  return {.batches = std::move(batches), .steps = steps};
}

double width_factor(const TrainConfig& config) {
  return width_factor(config.optimizer.kind, width_of(config.model));
}

RunSchedules run_schedules(const TrainConfig& config, std::int64_t steps) {
  const RunUnits units{.samples = samples_of_run(config, steps),
                       .batch = config.batch.global,
                       .sequence = config.model.sequence};
  // Words are vectors to muP, one of each model's width for every word: sgd scales their rate too.
  const bool follows = config.optimizer.kind == OptimizerKind::sgd;
  return {.rate = rate_plan(config.rate, units),
          .ends = embedding_rate_plan(config.rate, units, follows ? width_factor(config) : 1),
          .decay = decay_plan(config.optimizer, units.samples)};
}

Progress progress_of(const TrainConfig& config, const RunLength& length) {
  return {.batches = length.batches,
          .curriculum = curriculum_of(config),
          .schedules = run_schedules(config, length.steps),
          .steps = length.steps};
}

RunData open_run_data(const TrainConfig& config, Epoch epoch) {
  return open_run_data({.model = config.model,
                        .data = config.data,
                        .eval = config.eval,
                        .seed = config.run.seed,
                        .length = run_length(config),
                        .one_epoch = epoch == Epoch::one || config.data.difficulty.on(),
                        .asked = config.length.samples});
}

ReplicaConfig replica_config(const TrainConfig& config) {
  return {.model = config.model,
          .parallel = config.parallel,
          .optimizer = config.optimizer,
          .scaling = config.scaling,
          .greatest_scores = config.log.greatest_score,
          .seed = std::uint64_t(config.run.seed)};
}

StepOrder step_order(const TrainConfig& config) {
  return {.seed = std::uint64_t(config.run.seed),
          .clip = config.optimizer.clip,
          .per_token = config.batch.per_token_loss,
          .together = int(config.batch.micro / rows_of_a_pass(config.model, config.batch)),
          .count_zeros = config.log.zeros,
          .params_norm = config.log.params_norm};
}

StepSettings step_settings(const TrainConfig& config, const ProcessMesh& mesh) {
  return {.order = step_order(config),
          .turn = {.micro_batch = int(rows_of_a_pass(config.model, config.batch)),
                   .rank = mesh.place(sample_axes),
                   .ranks = sample_ranks(mesh.layout()),
                   .owners = owners_of(config.model)},
          .one_by_one = sums_of(config.model).tree_of_sequences(),
          .width_factor = width_factor(config),
          .guard = config.guard,
          .tells = mesh.world().rank() == 0,
          .scale_moves = config.model.precision == Precision::f16 && !config.scaling.constant};
}

EvaluationSettings evaluation_settings(const TrainConfig& config, const ProcessMesh& mesh,
                                       decltype(EvaluationSettings::must_stop) must_stop) {
  const EvalConfig& eval = config.eval;
  const std::int64_t micro = eval.micro > 0 ? eval.micro : config.batch.micro;
  const std::int64_t rows = sums_of(config.model).samples_of_a_pass(micro);
  return {.eval = eval,
          .data = config.data,
          .turn = {.global_batch = int(eval.global > 0 ? eval.global : config.batch.global),
                   .micro_batch = int(rows),
                   .rank = mesh.place(sample_axes),
                   .ranks = sample_ranks(mesh.layout()),
                   .owners = owners_of(config.model)},
          .together = int(micro / rows),
          .must_stop = std::move(must_stop)};
}

bool evaluates(const TrainConfig& config) {
  const EvalConfig& e = config.eval;
  const DataConfig& d = config.data;
  const bool test = e.iterations > 0;
  const bool valid = e.whole_set || (test && (e.interval > 0 || e.skip_train));
  if (!d.per_split_file.empty()) return valid || test;
  if (d.split.empty()) return (valid && !d.valid_paths.empty()) || (test && !d.test_paths.empty());
  const auto weights = data::split_weights(d.split);
  return (valid && weights[1] > 0) || (test && weights[2] > 0);
}

TellerSettings teller_settings(const TrainConfig& config, std::span<const NamedLoss> losses) {
  std::vector<std::string> names;
  for (const NamedLoss& loss : losses) names.push_back(loss.name);
  std::vector<std::string> balancing;
  for (const NamedLoss& loss : balancing_losses(config.model)) balancing.push_back(loss.name);
  return {.log = config.log,
          .spiky_loss = config.guard.spiky_loss,
          .sequence = config.model.sequence,
          .flops_of =
              [model = config.model, seed = std::uint64_t(config.run.seed),
               curriculum = curriculum_of(config)](std::int64_t step, std::int64_t samples) {
                const data::Rows rows = curriculum.rows_at(step, samples);
                return double(rows.count) * flops_of_sample(model, seed, step, rows.length);
              },
          .losses = std::move(names),
          .balancing = std::move(balancing)};
}

}  // namespace weft
