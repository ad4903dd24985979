// What travels between ranks as small integers.
#pragma once

#include <cstdint>

#include "weft/base/legal.h"
#include "weft/base/on_resume.h"

namespace weft {

/// ZeRO++'s: what of cut matrices travels so, and how many numbers share a scale.
struct WireConfig {
  bool weights = false, gradients = false;
  std::int64_t weight_block = 2048, gradient_block = 256;
};

template <class Visitor>
void describe(Visitor& v, WireConfig& c) {
  v("weights", c.weights, OnResume::step,
    "gather cut matrices as integers of 8 bits with a scale a block: layers read rounded ones");
  v("gradients", c.gradients, OnResume::step,
    "send cut gradients of matrices as integers of 4 bits with a scale a block, and add them in f32");
  v("weight_block", c.weight_block, OnResume::step, "weights that share a scale on their way",
    legal::from_to(2, 65536));
  v("gradient_block", c.gradient_block, OnResume::step, "gradients that share a scale on their way",
    legal::from_to(2, 65536));
}

}  // namespace weft
