// One place decides what a pipeline looks like; checks, runs and drawings all ask here.
#include "weft/train/stages.h"

namespace weft {

std::vector<StagePart> stages_of(const TrainConfig& config) {
  const ParallelConfig& p = config.parallel;
  return cut_stages(config.model.layers, {.ranks = p.pp,
                                          .first_layers = p.first_stage_layers,
                                          .last_layers = p.last_stage_layers,
                                          .count_embedding = p.count_embedding,
                                          .count_loss = p.count_loss,
                                          .layout = p.layout});
}

pipe::Schedule schedule_of(const ParallelConfig& parallel, int microbatches) {
  return pipe::posted_early(pipe::with_transfers(pipe::one_f_one_b(parallel.pp, microbatches)));
}

pipe::Schedule evaluation_of(const ParallelConfig& parallel, int microbatches) {
  std::vector<int> home = schedule_of(parallel, microbatches).home;
  return pipe::posted_early(pipe::with_transfers(pipe::forwards_only(std::move(home), microbatches)));
}

}  // namespace weft
