// What this machine can do at most, measured on a device: what shares of the limit are shares of.
#pragma once

#include <cstdint>

#include "weft/tensor/device.h"
#include "weft/tensor/dtype.h"

namespace weft {

struct Limits {
  double product_flops = 0;  // a second, of a square product
  double copy_bytes = 0;     // a second, read and written, of a block far larger than the caches
};

/// Large enough that nothing but the machine limits them; a second or two.
struct LimitSizes {
  std::int64_t side = 2048;                      // of the matrices
  std::int64_t block = std::int64_t(256) << 20;  // bytes copied
};
/// The best of several tries with all of the device's threads.
Limits measure_limits(Device& device, Dtype dtype, const LimitSizes& sizes = {});

}  // namespace weft
