// What each part of a run takes of its settings. Here a run's whole configuration ends: behind this, a part
// knows its own settings and no more.
#pragma once

#include "weft/train/curriculum.h"
#include "weft/train/evaluator.h"
#include "weft/train/replica.h"
#include "weft/train/stepper.h"
#include "weft/train/teller.h"

namespace weft {

/// The only place where a run's batches are planned.
BatchSchedule batch_schedule(const TrainConfig& config);
Curriculum curriculum_of(const TrainConfig& config);
RunLength run_length(const TrainConfig& config);
RunSchedules run_schedules(const TrainConfig& config, std::int64_t steps);
/// By what the rate of weights that learn by the model's width is scaled.
double width_factor(const TrainConfig& config);
/// At the start of a run, before a checkpoint says more.
Progress progress_of(const TrainConfig& config, const RunLength& length);

/// An index of samples by difficulty is of one epoch, whose samples come again as clusters are drawn from.
enum class Epoch : std::uint8_t { as_long_as_the_run, one };
RunData open_run_data(const TrainConfig& config, Epoch epoch = Epoch::as_long_as_the_run);
ReplicaConfig replica_config(const TrainConfig& config);
/// What is the same for all steps: all but numbers and rates.
StepOrder step_order(const TrainConfig& config);
StepSettings step_settings(const TrainConfig& config, const ProcessMesh& mesh);
EvaluationSettings evaluation_settings(const TrainConfig& config, const ProcessMesh& mesh,
                                       decltype(EvaluationSettings::must_stop) must_stop);
/// Whether a run, of completed settings, ever looks at a validation or test set.
bool evaluates(const TrainConfig& config);
TellerSettings teller_settings(const TrainConfig& config, std::span<const NamedLoss> losses);

}  // namespace weft
