// How the settings of a run may differ from its checkpoint's: which must agree, and which are only told.
#pragma once

#include <string>
#include <vector>

#include "weft/train/save_facts.h"

namespace weft {

/// Fails where the checkpoint's model computes something else, or its data position would mean other samples.
void must_continue(const RunFacts& facts, const TrainConfig& config, const std::string& who);
/// Fails where schedules differ and nobody said which holds.
void must_agree(const RunSchedules& saved, const RunSchedules& given, const std::string& who);
/// A sentence that names all settings that may differ and do; empty where none does.
std::string other_settings(const RunFacts& facts, const TrainConfig& config);

/// A sentence that names what is another in the model of which the weights alone are taken; empty where
/// nothing is, but for experts that begin as its MLPs.
std::string another_model(const RunFacts& facts, const TrainConfig& config);

/// Whether what is of ranks (Held::of_ranks) has its place here too.
bool same_ranks(const RunFacts& facts, const ParallelConfig& parallel, OptimizerKind optimizer);

/// What a step of this run has to do with the same step of the checkpoint's.
struct Kinship {
  std::string from;           // where the checkpoint lies
  std::string another_step;   // why this run's is another one; empty: it is the same
  double rounding = 0;        // its share of a number: sums are added in another order
  bool regrouped = false;     // microbatches hold other samples
  bool groups_weigh = false;  // which shows, as each weighs its own tokens
};
Kinship kinship(const RunFacts& facts, const TrainConfig& config, const std::string& from);

}  // namespace weft
