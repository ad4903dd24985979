// Frequencies of rotary positions, with the ways of stretching them beyond the length they were trained for.
#include "weft/model/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "weft/tensor/host.h"

namespace weft {
namespace {

// Long wavelengths are stretched, short ones kept, those between blended.
double llama3(double frequency, const RotaryConfig& rotary) {
  const double wavelength = 2 * std::numbers::pi / frequency;
  const double length = double(rotary.original_positions);
  if (wavelength > length / rotary.low) return frequency / rotary.factor;
  if (wavelength < length / rotary.high) return frequency;
  if (rotary.low == rotary.high) return frequency;  // there is nothing between
  const double smooth = (length / wavelength - rotary.low) / (rotary.high - rotary.low);
  return (1 - smooth) * frequency / rotary.factor + smooth * frequency;
}

// The channel that turns this many times over the trained length.
double yarn_channel(double turns, std::int64_t channels, const RotaryConfig& rotary) {
  return double(channels) * std::log(double(rotary.original_positions) / (turns * 2 * std::numbers::pi)) /
         (2 * std::log(rotary.base));
}

double yarn(double frequency, std::int64_t i, std::int64_t channels, const RotaryConfig& rotary) {
  const double first = yarn_channel(rotary.beta_fast, channels, rotary),
               last = yarn_channel(rotary.beta_slow, channels, rotary);
  const double low = std::max(0.0, rotary.whole_channels ? std::floor(first) : first);
  const double high = std::min(double(channels - 1), rotary.whole_channels ? std::ceil(last) : last);
  const double ramp = std::clamp((double(i) - low) / std::max(high - low, 0.001), 0.0, 1.0);
  return frequency / rotary.factor * ramp + frequency * (1 - ramp);
}

double mscale(double factor, double m) { return factor <= 1 ? 1 : 0.1 * m * std::log(factor) + 1; }

double longrope(double wave, std::int64_t i, std::int64_t positions, const RotaryConfig& rotary) {
  const auto& factors = positions > rotary.original_positions ? rotary.long_factors : rotary.short_factors;
  return 1 / double(float(factors[std::size_t(i)]) * float(wave));
}

std::vector<double> frequencies(const RotaryConfig& rotary, std::int64_t channels, std::int64_t positions) {
  std::vector<double> out;
  for (std::int64_t i = 0; i < channels / 2; ++i) {
    // Rounded as the originals do, which compute frequencies in f32.
    const double wave = std::pow(rotary.base, double(2 * i) / double(channels));
    const double plain = float(1.0 / wave);
    switch (rotary.scaling) {
      case RotaryScaling::none:
        out.push_back(plain);
        break;
      case RotaryScaling::linear:
        out.push_back(plain / rotary.factor);
        break;
      case RotaryScaling::llama3:
        out.push_back(llama3(plain, rotary));
        break;
      case RotaryScaling::yarn:
        out.push_back(yarn(plain, i, channels, rotary));
        break;
      case RotaryScaling::longrope:
        out.push_back(longrope(wave, i, positions, rotary));
        break;
    }
  }
  return out;
}

/// Those that samples have, which may be far fewer than the model knows.
std::int64_t places(const ModelConfig& config) { return std::max(config.sequence, config.decoder_sequence); }

double growth_at(const ScoresConfig& scores, std::int64_t place) {
  const std::int64_t first = scores.growth_of == QueryGrowth::still ? 1 : 0;
  const std::int64_t times = (place + first) / scores.growth_every;
  return 1 + scores.growth * std::log(1 + double(times));
}

enum class Grows : std::uint8_t { no, yes };

Tensor angles_of(const ModelConfig& config, const RotaryConfig& rotary, Device& device,
                 Grows grows = Grows::no) {
  if (!turns_channels(config)) return {};
  const std::int64_t channels = turned_channels(config);
  const std::vector<double> frequency = frequencies(rotary, channels, config.sequence);
  const double concentration = growth_of_scores(rotary);
  const std::int64_t positions = places(config);
  std::vector<float> angles;
  angles.reserve(std::size_t(positions) * std::size_t(channels));
  for (std::int64_t at = 0; at < positions; ++at) {
    const double size = concentration * (grows == Grows::yes ? growth_at(config.scores, at) : 1);
    for (const double f : frequency) {
      const double angle = float(float(at) * float(f));
      angles.push_back(float(std::cos(angle) * size));
      angles.push_back(float(std::sin(angle) * size));
    }
  }
  return from_host(device, {positions, channels / 2, 2}, angles, Use::weights);
}

}  // namespace

double growth_of_scores(const RotaryConfig& r) {
  if (r.scaling == RotaryScaling::yarn) return mscale(r.factor, r.mscale) / mscale(r.factor, r.mscale_all);
  if (r.scaling != RotaryScaling::longrope || r.factor <= 1) return 1;
  return std::sqrt(1 + std::log(r.factor) / std::log(double(r.original_positions)));
}

double attention_scale(const ModelConfig& config) {
  if (config.softmax_scale != 0) return config.softmax_scale;
  const RotaryConfig& r = config.rotary;
  const bool grows = config.latent.on && r.scaling == RotaryScaling::yarn;
  const double growth = grows ? mscale(r.factor, r.mscale_all) : 1;
  return growth * growth / std::sqrt(double(config.channels));
}

Tensor rotary_angles(const ModelConfig& config, Device& device) {
  return angles_of(config, config.rotary, device);
}

Tensor rotary_angles_of_window(const ModelConfig& config, Device& device) {
  RotaryConfig rotary = config.rotary;
  if (rotary.window_base) {
    rotary.base = *rotary.window_base;
    rotary.scaling = RotaryScaling::none;
  }
  return angles_of(config, rotary, device);
}

Tensor growing_angles(const ModelConfig& config, Device& device) {
  return angles_of(config, config.rotary, device, Grows::yes);
}

Tensor growth_of_queries(const ModelConfig& config, Device& device) {
  if (config.scores.growth_every == 0) return {};
  std::vector<float> turns;
  for (std::int64_t at = 0; at < places(config); ++at) {
    const auto factor = float(growth_at(config.scores, at));
    for (std::int64_t pair = 0; pair < config.channels / 2; ++pair) turns.insert(turns.end(), {factor, 0});
  }
  return from_host(device, {places(config), config.channels / 2, 2}, turns, Use::weights);
}

}  // namespace weft
