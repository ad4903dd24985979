// Taking up a run where a checkpoint left it.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/checkpoint/named.h"
#include "weft/optim/optimizer.h"
#include "weft/optim/weights.h"
#include "weft/train/save_facts.h"

namespace weft {

/// What a run that loads has built.
struct ResumeInto {
  const TrainConfig& config;
  Weights& weights;
  Optimizer& optimizer;
  Communicator& world;
  std::vector<checkpoint::Named> scales;  // of 8-bit products, where they are delayed
  RunSchedules schedules;                 // as the settings say
  RunTokenizer tokenizer;
};

struct Resumed {
  std::optional<RunFacts> facts;  // none: the run starts at step 0, with new weights
  bool weights_only = false;      // finetune: the run starts at step 0, with these weights
  std::filesystem::path from;
  std::vector<std::int64_t> passed_over;  // steps that are damaged
  std::vector<std::string> notices;
};

/// Every rank calls it. Finds what --load, --ckpt-step and --pretrained-checkpoint mean, compares settings,
/// and fills weights and states; a damaged step is passed over for an older one, with a notice. Finding
/// nothing fails unless a fresh start was allowed, and never starts anew over a step that was complete.
Resumed resume(const ResumeInto& into);

/// Fails where saving would mix two runs: the directory holds a complete step newer than `step`, and not one
/// of `passed_over`.
void must_not_mix_runs(const CheckpointConfig& config, std::int64_t step,
                       const std::vector<std::int64_t>& passed_over, Communicator& world);

/// For --use-checkpoint-args: the model's settings, and the tokenizer's, as JSON that from_json() takes.
std::string settings_of_checkpoint(const CheckpointConfig& config);
/// The seed that a run resumes with; none where nothing is there to resume from, or its seed is not wanted.
std::optional<std::int64_t> seed_of_checkpoint(const CheckpointConfig& config);

/// Where a file of `tokenizer` is gone, the copy in the checkpoint that --load means stands in for it.
/// Returns what is to be said.
std::vector<std::string> tokenizer_of_checkpoint(const CheckpointConfig& config, TokenizerConfig& tokenizer);

}  // namespace weft
