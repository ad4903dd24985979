// Whether a GPU's products hold their bits: exact mode asks when it opens one.
#pragma once

#include "weft/tensor/device.h"

namespace weft::cuda {

/// Multiplies a whole and a part of it that lies otherwise in blocks, fragments and vectors; fails with
/// Kind::device where bits of the part are not those of the whole. Nobody promises them for tensor cores.
void must_hold_bits(Device& device);

}  // namespace weft::cuda
