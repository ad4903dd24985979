// A product with gelu in it, as kernels and the library's plans say it to each other.
#pragma once

#include "weft/tensor/tensor.h"

namespace weft::cuda {

/// What gelu reads, beside the sum that goes through it; or, on the way back, what it read.
struct ThroughGelu {
  Tensor before;  // of the product's type; none: there is no gelu
  bool back = false;
};

}  // namespace weft::cuda
