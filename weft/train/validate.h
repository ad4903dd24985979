// Fills in what follows from other settings, and refuses what does not fit together.
#pragma once

#include <string>
#include <vector>

#include "weft/train/config.h"

namespace weft {

/// `world` is the number of ranks; 0: as many as the layout and --ranks ask for. Returns sentences to be said
/// once.
std::vector<std::string> complete(TrainConfig&, int world);

namespace validate {
void layout(TrainConfig&, int world);
void batches(TrainConfig&);
void length(TrainConfig&);
/// Layers and tokens that steps leave out: that this model and its layout can.
void left_out(const TrainConfig&);
/// That every length which will occur can be shared out as the layout asks.
void curriculum(TrainConfig&);
/// The same of one length, the model's.
void sequence(const ModelConfig&, const ParallelConfig&);
/// That a rank can take so many pieces of every sample one by one.
void pieces(const TrainConfig&, std::int64_t each);
/// That metrics can be read, and nothing else orders samples.
void difficulty(const TrainConfig&);
void rates(const TrainConfig&);
void optimizer(const TrainConfig&);
void offload(TrainConfig&, std::vector<std::string>& notices);
/// Whoever looks at greatest scores.
void scores(const TrainConfig&);
void precision(TrainConfig&, std::vector<std::string>& notices);
void blocks(const TrainConfig&, std::vector<std::string>& notices);
void data(TrainConfig&, std::vector<std::string>& notices);
void checkpoint(const TrainConfig&);
void guard(const TrainConfig&);
void evaluation(TrainConfig&);
void model(TrainConfig&, std::vector<std::string>& notices);
}  // namespace validate

}  // namespace weft
