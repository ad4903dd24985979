// How difficult samples are, and the index of it: what Megatron-DeepSpeed's analyze_data.py and DeepSpeed's
// DataAnalyzer make.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/data/dataset.h"

namespace weft::data {

/// How many tokens are no padding; how rare its words are, as a sum of -log(frequency); the first, and the
/// second among samples of one length.
enum class Difficulty : std::uint8_t { seqlen, vocab_rarity, seqlen_vocab_rarity };
constexpr std::array<std::string_view, 3> words(Difficulty) {
  return {"seqlen", "vocab_rarity", "seqlen_vocab_rarity"};
}

struct DifficultyOf {
  const Dataset& set;
  std::int64_t sequence = 0;  // tokens of a sample
  std::int64_t words = 0;     // that an id may be, padding of the embedding and one more included: those that
                              // never occur count as if they did once
  int threads = 1;
};
/// Of every sample. A sample's text is its tokens and the last label; of samples with padding, what is none.
std::vector<std::int64_t> difficulties(const DifficultyOf& of, Difficulty what);

/// Below FOLDER/NAME: NAME_index_to_sample and NAME_index_to_metric, a row for each value in ascending order;
/// NAME_index_to_sample_percentile_merged, about a hundred rows of the former; NAME_sample_to_metric.
void write_difficulty_index(const std::string& folder, const std::string& name,
                            std::span<const std::int64_t> of_samples);

}  // namespace weft::data
