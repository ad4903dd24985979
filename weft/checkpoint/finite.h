// Whether numbers as they lie in memory are all finite: asked of the bytes that are written anyway.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/tensor/dtype.h"

namespace weft::checkpoint {

/// The place, counted in elements, of the first number that is infinite or NaN; -1 where all are finite, and
/// for types that hold none.
std::int64_t first_not_finite(std::span<const std::byte> bytes, Dtype dtype);

}  // namespace weft::checkpoint
