// Samples by difficulty: which of them a step may see, as DeepSpeed's curriculum metrics say it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/data/lengths.h"
#include "weft/data/sampler.h"

namespace weft::data {

/// What a step's difficulty is: a value of the metric, or a share of all samples in parts of the most.
enum class DifficultyBy : std::uint8_t { value, percentile };
constexpr std::array<std::string_view, 2> words(DifficultyBy) { return {"value", "percentile"}; }

/// What a step admits anew is a cluster of its own; or the metric admits all samples from the start.
enum class Clustering : std::uint8_t { schedule_based, single_cluster };
constexpr std::array<std::string_view, 2> words(Clustering) { return {"schedule_based", "single_cluster"}; }

struct DifficultyMetric {
  std::string name;
  LengthRule rule;  // difficulties, where it says lengths
  DifficultyBy by = DifficultyBy::value;
  Clustering clusters = Clustering::schedule_based;
  std::string samples, values;  // prefixes: the samples of each value, and the values; DeepSpeed's
                                // index_to_sample and index_to_metric
};

/// A metric in one word, as a flag takes it:
/// "vocab_rarity:by=percentile,samples=P,curve=fixed_root,least=1,most=100,steps=110,multiple=1,root=2".
/// Numbers of `levels` and `until` have slashes between. Refuses what does not fit together.
DifficultyMetric read_metric(std::string_view word);
std::string write_metric(const DifficultyMetric& metric);

struct DifficultyRule {
  std::vector<DifficultyMetric> metrics;
  std::uint32_t seed = 1234;
};
/// Samples of a training set of so many, in DeepSpeed's order. A step is drawn from the clusters that it and
/// the steps before admitted; whoever asks for a step replays those before it, so nothing is to be saved. All
/// steps have one batch.
std::unique_ptr<Sampler> difficulty_sampler(const DifficultyRule& rule, std::int64_t total);

}  // namespace weft::data
