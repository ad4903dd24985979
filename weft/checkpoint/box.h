// Boxes of a global tensor: where two meet, and how the common part lies in each.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "weft/tensor/shape.h"

namespace weft::checkpoint {

/// As many elements as `shape` says, from `offset` on in every dimension, stored row by row.
struct Box {
  Shape offset, shape;
  bool operator==(const Box&) const = default;
};

/// Whether a box has the global tensor's dimensions and ends within it.
bool fits(const Box& box, const Shape& global);

/// What both hold; nothing where that has no elements.
std::optional<Box> overlap(const Box& a, const Box& b);

/// A stretch of elements that lie in order on both sides, counted in elements from the start of each box.
struct Run {
  std::int64_t from = 0, to = 0, count = 0;
};
/// Calls `each` for as few stretches as cover `common`, which both boxes hold.
void each_run(const Box& common, const Box& from, const Box& to, const std::function<void(const Run&)>& each);

}  // namespace weft::checkpoint
