// Rotary positions: pairs of channels turn by an angle that grows with the position.
#pragma once

#include <vector>

#include "weft/tensor/kernels.h"

namespace weft::ops {

/// Lower frequencies are stretched for contexts longer than the one trained on (as Llama 3 does it).
struct RopeStretch {
  double factor = 1;  // 1: none
  double low = 1, high = 4;
  double original = 8192;  // positions trained on
};
struct RopeTable {
  std::int64_t positions = 0;
  std::int64_t rotated = 0;  // channels that turn: even
  double base = 10000;
  double interpolation = 1;  // positions are divided by this
  RopeStretch stretch = {};
};

/// Angle per position of each pair: base^(-2 i / rotated), stretched.
std::vector<double> rope_frequencies(const RopeTable& table);
/// f32 [positions, rotated / 2, 2]: cosine and sine
Tensor rope_angles(Device& device, const RopeTable& table, Use use = Use::activations);

/// Turns the first channels of x [s, b, .., d]; Turn::backward is the derivative.
void rope_in_place(const Tensor& x, const RopeArgs& how);

}  // namespace weft::ops
