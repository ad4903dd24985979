// RotaryConfig: how places turn channels.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "weft/base/legal.h"
#include "weft/base/on_resume.h"

namespace weft {

enum class RotaryScaling : std::uint8_t { none, linear, llama3, yarn, longrope };
constexpr std::array<std::string_view, 5> words(RotaryScaling) {
  return {"none", "linear", "llama3", "yarn", "longrope"};
}

/// The angles of rotary positions. `percent` of each head's channels turn, the rest pass.
struct RotaryConfig {
  double base = 10000.0;
  double percent = 1.0;
  bool interleaved = false;  // pairs (0,1), (2,3), … instead of first half with second half
  RotaryScaling scaling = RotaryScaling::none;
  double factor = 1.0;           // how many times longer than trained: linear, llama3, yarn, longrope
  double low = 1.0, high = 4.0;  // llama3: wavelengths in original_positions / low … / high are blended
  std::int64_t original_positions = 0;    // llama3, yarn, longrope: the length the base was trained for
  double beta_fast = 32, beta_slow = 1;   // yarn: rotations between which the two forms are blended
  bool whole_channels = true;             // yarn: from a whole channel to a whole channel
  double mscale = 1.0, mscale_all = 0.0;  // yarn: growth of the attention temperature
  std::vector<int> skip_layers;           // one 0 or 1 a layer: 1 turns nothing; empty: all turn
  int skip_every = 0;                     // fills skip_layers: every n-th layer turns nothing; 0: all turn
  /// longrope: by how much each pair turns slower, up to the trained length and where sequences are longer
  std::vector<double> short_factors, long_factors;
  std::optional<double> window_base;  // of layers that look through a window, unscaled; unset: as the rest
};

template <class Visitor>
void describe(Visitor& v, RotaryConfig& c) {
  v("base", c.base, OnResume::model, "base of the rotary angles", legal::positive);
  v("percent", c.percent, OnResume::model, "part of each head's channels that turns", legal::fraction);
  v("interleaved", c.interleaved, OnResume::model, "turn neighboring channels instead of halves");
  v("scaling", c.scaling, OnResume::model, "how angles stretch beyond the trained length");
  v("factor", c.factor, OnResume::model, "how many times the trained length", legal::positive);
  v("low", c.low, OnResume::model,
    "llama3 scaling: wavelengths above original_positions / low are divided by the factor", legal::positive);
  v("high", c.high, OnResume::model, "llama3 scaling: wavelengths below original_positions / high are kept",
    legal::positive);
  v("original_positions", c.original_positions, OnResume::model, "length the angles were first trained for",
    legal::size_or_none);
  v("beta_fast", c.beta_fast, OnResume::model, "yarn: channels turning more often than this are kept",
    legal::positive);
  v("beta_slow", c.beta_slow, OnResume::model,
    "yarn: channels turning less often than this are divided by the factor", legal::positive);
  v("whole_channels", c.whole_channels, OnResume::model,
    "yarn: blend from a whole channel to a whole channel");
  v("mscale", c.mscale, OnResume::model, "yarn: growth of the attention temperature", legal::not_negative);
  v("mscale_all", c.mscale_all, OnResume::model,
    "yarn: the same for all channels, by which mscale is divided", legal::not_negative);
  v("skip_layers", c.skip_layers, OnResume::model, "which layers have no rotary positions (empty: none)",
    legal::fraction);
  v("skip_every", c.skip_every, OnResume::model, "every n-th layer has no rotary positions (0: all have)",
    legal::size_or_none);
  v("short_factors", c.short_factors, OnResume::model,
    "longrope: by how much each pair of channels turns slower in sequences up to original_positions",
    legal::positive);
  v("long_factors", c.long_factors, OnResume::model, "longrope: the same in longer ones", legal::positive);
  v("window_base", c.window_base, OnResume::model,
    "base of the angles of layers that look through a window, which are not stretched", legal::positive);
}

}  // namespace weft
