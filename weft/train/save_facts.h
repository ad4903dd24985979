// What a checkpoint says about its run beside the tensors: where it stood, and how it was set up. One
// listing gives the JSON that people read and the reader of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/train/config.h"
#include "weft/train/schedules.h"

namespace weft {

/// Where a run stood between two steps.
struct RunPosition {
  std::int64_t step = 0;  // steps taken
  std::int64_t consumed_samples = 0, learned_samples = 0, skipped_samples = 0;
  std::optional<std::int64_t> consumed_tokens, learned_tokens;  // unset: of whole samples
  std::int64_t last_batch = 0;                                  // samples of the last step
  std::int64_t valid_samples = 0, test_samples = 0;             // that evaluations have used
  bool optimizer = true;                                        // its states are in the checkpoint
  bool schedules = true;  // the run's are written down; another program's run may have had any
  std::int64_t updates = 0;
  std::optional<double> loss_scale;  // f16 with a scale that moves
  int scale_clean = 0, scale_patience = 0;
  std::optional<std::int64_t> seed;
  std::vector<std::int64_t> validated_steps;  // of those that were saved
  std::vector<double> validated_losses;
};

/// What --verify-resume computes at the save and again after loading, from the batch of the last step.
struct RunWitness {
  std::optional<double> loss, weights_norm;
};

struct RunLayout {
  int tp = 1, cp = 1, dp = 1, pp = 1;
};

/// Which tokenizer: the files it was read from, each with its hash.
struct RunTokenizer {
  std::string type;
  std::int64_t size = 0;
  std::vector<std::string> files, hashes;
  std::vector<std::string> copies;  // their names beside the checkpoint, then those of what belongs to them
};

struct RunSchedules {
  RatePlan rate, ends;
  DecaySchedule decay;
};

struct RunFacts {
  RunPosition run;
  RunWitness witness;
  RunLayout layout;
  RunTokenizer tokenizer;
  RunSchedules schedules;
  TrainConfig configuration;
};

std::string to_json(const RunFacts& facts);
/// Fails with Kind::data, naming `who`, on what no run of weft wrote. Settings that this weft does not know
/// are left out.
RunFacts facts_from_json(std::string_view json, const std::string& who);

/// The model's settings and, if asked, the tokenizer's, as JSON that from_json() takes for a TrainConfig.
std::string settings_to_take(const RunFacts& facts, bool tokenizer_too);

/// The files that a tokenizer is read from, with what they hold now.
RunTokenizer tokenizer_fact(const TokenizerConfig& tokenizer, std::int64_t size);

}  // namespace weft
