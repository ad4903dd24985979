// What a kind of layer is asked under its cuts: a few steps as on one rank, and in exact mode with its bits.
#pragma once

#include <vector>

#include "tests/equal/same_bits.h"
#include "tests/support/sanitized.h"

namespace weft::testing {

inline Cut with_few_steps(Cut cut, bool exact = false) {
  cut.steps = rounds(4);
  cut.exact = exact;
  return cut;
}

/// The same steps of one rank.
inline Curve alone(const ModelConfig& config, bool exact = false) {
  return train(config, with_few_steps({.parallel = {.dp = 1}, .micro_batch = exact ? 1 : 8}, exact));
}

/// What one rank learns in steps that are enough for what begins as nothing, as gains of one do, to tell.
inline std::vector<double> told_apart(const ModelConfig& config) {
  Cut cut{.parallel = {.dp = 1}, .micro_batch = 8};
  cut.steps = 4;
  return train(config, cut).losses;
}

/// Every one is another training.
inline void expect_all_differ(const std::vector<std::vector<double>>& losses) {
  for (std::size_t i = 0; i < losses.size(); ++i)
    for (std::size_t k = 0; k < i; ++k) EXPECT_NE(losses[i], losses[k]) << i << " " << k;
}

inline void expect_steps_of_one_rank(const ModelConfig& config, const std::vector<Cut>& cuts) {
  const Curve one = alone(config);
  for (const Cut& cut : cuts)
    EXPECT_EQ(difference(train(config, with_few_steps(cut)), one, rounding_of(config, cut)), "")
        << name_of(cut);
}

inline void expect_bits_of_one_rank(ModelConfig config, const std::vector<Cut>& cuts) {
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    config.precision = precision;
    const Curve one = alone(config, true);
    for (const Cut& cut : cuts) expect_same_bits(train(config, with_few_steps(cut, true)), one, name_of(cut));
  }
}

/// What counts memory without numbers says what steps hold, in exact mode too.
inline void expect_counted_memory(const ModelConfig& config, const std::vector<Cut>& cuts) {
  for (const Cut& cut : some_of(cuts, 8)) {
    EXPECT_EQ(memory_difference(config, cut), "") << name_of(cut);
    if (sanitized) continue;
    Cut exact = cut;
    exact.exact = true;
    EXPECT_EQ(memory_difference(config, exact), "") << name_of(cut);
  }
}

}  // namespace weft::testing
