// The angles of rotary positions, plain and stretched beyond the length of training.
#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

#include "weft/backend/open.h"
#include "weft/model/rotary.h"
#include "weft/tensor/host.h"

namespace weft {
namespace {

constexpr std::int64_t channels = 128;

/// The angle of each pair at a position, from its cosine and sine: right below a half turn.
std::vector<double> angles(const RotaryConfig& rotary, std::int64_t position) {
  const auto device = open_device("cpu:reference");
  ModelConfig config;
  config.positions = Positions::rotary;
  config.channels = channels;
  config.sequence = position + 1;
  config.rotary = rotary;
  const std::vector<double> table = numbers(rotary_angles(config, *device).at(0, position));
  std::vector<double> out;
  for (std::size_t i = 0; i < table.size(); i += 2) out.push_back(std::atan2(table[i + 1], table[i]));
  return out;
}

TEST(Rotary, turns_pairs_by_powers_of_the_base) {
  const std::vector<double> found = angles({.base = 500000}, 1);
  ASSERT_EQ(found.size(), channels / 2);
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], std::pow(500000.0, -double(2 * i) / channels), 1e-7) << i;
}

TEST(Rotary, turns_a_share_of_the_channels) { EXPECT_EQ(angles({.percent = 0.25}, 1).size(), channels / 8); }

TEST(Rotary, divides_positions_where_linear_scaling_asks) {
  const std::vector<double> near = angles({}, 1);
  const std::vector<double> far = angles({.scaling = RotaryScaling::linear, .factor = 2}, 2);
  for (std::size_t i = 0; i < near.size(); ++i) EXPECT_NEAR(far[i], near[i], 1e-7) << i;
}

// Llama 3: wavelengths below a quarter of the trained length stay, those above it grow by the factor.
TEST(Rotary, stretches_low_frequencies_only) {
  const RotaryConfig plain{.base = 500000};
  RotaryConfig stretched = plain;
  stretched.scaling = RotaryScaling::llama3;
  stretched.factor = 8;
  stretched.original_positions = 8192;
  const std::vector<double> before = angles(plain, 1);
  const std::vector<double> after = angles(stretched, 1);
  for (std::size_t i = 0; i < after.size(); ++i) {
    const double wavelength = 2 * std::numbers::pi / before[i];
    if (wavelength < 8192.0 / 4) {
      EXPECT_EQ(after[i], before[i]) << i;
    }
    if (wavelength > 8192) {
      EXPECT_NEAR(after[i], before[i] / 8, 1e-6 * before[i]) << i;
    }
    EXPECT_LE(after[i], before[i]) << i;
  }
}

// As Llama 4 is published: nothing lies between what stays and what grows.
TEST(Rotary, stretches_from_one_wavelength_on_where_both_bounds_are_one) {
  RotaryConfig stretched{.base = 500000, .scaling = RotaryScaling::llama3, .factor = 16, .low = 1, .high = 1};
  stretched.original_positions = 8192;
  const std::vector<double> before = angles({.base = 500000}, 1), after = angles(stretched, 1);
  for (std::size_t i = 0; i < after.size(); ++i) {
    const bool grows = 2 * std::numbers::pi / before[i] > 8192;
    EXPECT_NEAR(after[i], before[i] / (grows ? 16 : 1), 1e-6 * before[i]) << i;
  }
}

// YaRN: what turns often over the trained length stays, what hardly turns grows by the factor, and attention
// gets 0.1 log(factor) + 1 warmer.
TEST(Rotary, blends_frequencies_and_warms_attention_as_yarn_does) {
  const RotaryConfig yarn{.scaling = RotaryScaling::yarn, .factor = 4, .original_positions = 2048};
  const std::vector<double> before = angles({}, 1);
  const std::vector<double> after = angles(yarn, 1);
  EXPECT_NEAR(after.front(), before.front(), 1e-7);
  EXPECT_NEAR(after.back(), before.back() / 4, 1e-6 * before.back());
  for (std::size_t i = 0; i < after.size(); ++i) EXPECT_LE(after[i], before[i] * (1 + 1e-6)) << i;
  const auto device = open_device("cpu:reference");
  ModelConfig config;
  config.positions = Positions::rotary;
  config.channels = channels;
  config.sequence = 1;
  config.rotary = yarn;
  EXPECT_NEAR(numbers(rotary_angles(config, *device)).front(), 0.1 * std::log(4.0) + 1, 1e-6);
}

// Each pair by its own factor, of one list up to the trained length and of another beyond it; attention gets
// sqrt(1 + ln factor / ln length) warmer in both, as Phi-3's own program has it.
TEST(Rotary, slows_each_pair_by_its_factor_as_longrope_does) {
  RotaryConfig longrope{.scaling = RotaryScaling::longrope, .factor = 32, .original_positions = 4};
  for (int i = 0; i < channels / 2; ++i) {
    longrope.short_factors.push_back(1 + 0.01 * i);
    longrope.long_factors.push_back(2 + 0.5 * i);
  }
  const std::vector<double> plain = angles({}, 1), near = angles(longrope, 1), far = angles(longrope, 4);
  for (std::size_t i = 0; i < near.size(); ++i) {
    EXPECT_NEAR(near[i], plain[i] / longrope.short_factors[i], 1e-6 * plain[i]) << i;
    EXPECT_NEAR(far[i], 4 * plain[i] / longrope.long_factors[i], 1e-5 * plain[i]) << i;
  }
  const auto device = open_device("cpu:reference");
  ModelConfig config;
  config.positions = Positions::rotary;
  config.channels = channels;
  config.sequence = 1;
  config.rotary = longrope;
  EXPECT_NEAR(numbers(rotary_angles(config, *device)).front(), std::sqrt(1 + std::log(32.0) / std::log(4.0)),
              1e-6);
}

}  // namespace
}  // namespace weft
