// How far a training moves by rounding alone: its weights begin a little off.
#pragma once

#include <cstdint>

#include "weft/model/config.h"

namespace weft {

class Weights;

struct Disturbance {
  double share = 0;        // of itself, by which a weight is off at most
  std::uint32_t time = 0;  // each is another one
};

/// A weight of f32 goes to the float next to it, or stays; of bf16 and f16, one of eight is rounded
/// otherwise: less than products and sums in these types are off.
double least_disturbance(Precision precision);
/// This rank's masters, and what layers read.
void disturb(Weights& weights, const Disturbance& how);

}  // namespace weft
