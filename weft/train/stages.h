// From a configuration to a pipeline: how the model is cut, where stages live, and in which order they run.
#pragma once

#include <string>
#include <vector>

#include "weft/mesh/layout.h"
#include "weft/model/kind.h"
#include "weft/pipe/schedule.h"
#include "weft/train/config.h"

namespace weft {

/// Samples that go through the layers together: a microbatch, or in exact mode a sequence, because sums over
/// tokens have sequences as leaves.
std::int64_t rows_of_a_pass(const ModelConfig& model, const BatchConfig& batch);

/// What exact mode does instead of the form of context parallelism that was asked for; empty where it does
/// that.
std::string exact_context(const ModelConfig& model, const ParallelConfig& parallel);

/// What of a mixture is another thing in exact mode, where a sequence at a time goes through the layers;
/// empty where nothing is.
std::string exact_experts(const ModelConfig& model, const BatchConfig& batch);

/// What pieces of samples are in exact mode; empty where that is what they are without it.
std::string exact_pieces(const ModelConfig& model, const BatchConfig& batch,
                         const CurriculumConfig& curriculum);

/// What of a layout limits how layers are cut.
CutOver cut_over(const ParallelConfig& parallel);

/// Ranks that trade heads for steps of a sequence, in the layer where they are most.
int trading_ranks(const ParallelConfig& parallel);

/// Which ranks belong together.
ParallelLayout layout_of(const ParallelConfig& parallel);

/// The parts of all stages. Refuses what cannot be cut so, and a cut that the schedule has no place for.
std::vector<StagePart> stages_of(const ModelKind& kind, const ModelConfig& model,
                                 const ParallelConfig& parallel);
/// The pipeline rank of each stage.
std::vector<int> homes_of(const ParallelConfig& parallel);
/// The program of a step of so many microbatches, with its transfers. A configuration's is the same on all
/// ranks.
pipe::Schedule schedule_of(const ParallelConfig& parallel, int microbatches);
/// The same stages, forward only.
pipe::Schedule evaluation_of(const ParallelConfig& parallel, int microbatches);

}  // namespace weft
