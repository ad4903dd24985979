// Shapes are checked when they are made, so that no later product can overflow.
#include "weft/tensor/shape.h"

#include <algorithm>
#include <ostream>

#include "weft/base/error.h"

namespace weft {

Dims::Dims(std::span<const std::int64_t> dims) : rank_(int(dims.size())) {
  if (dims.size() > max_rank)
    fail(Kind::shape, "shape: ", dims.size(), " dimensions, at most ", max_rank, " are supported");
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

void Dims::push_back(std::int64_t dim) {
  if (rank_ == max_rank) fail(Kind::shape, "shape: one dimension more than the ", max_rank, " supported");
  dims_[std::size_t(rank_++)] = dim;
}

std::ostream& operator<<(std::ostream& out, const Dims& dims) {
  out << '[';
  for (int i = 0; i < dims.rank(); ++i) out << (i ? ", " : "") << dims[i];
  return out << ']';
}

Shape::Shape(const Dims& dims) : Dims(dims) {
  std::int64_t product = 1;
  for (const std::int64_t dim : all()) {
    if (dim < 0) fail(Kind::shape, "shape: ", dims, " has a negative size");
    if (__builtin_mul_overflow(product, dim, &product))
      fail(Kind::shape, "shape: ", dims, " has more elements than 63 bits can count");
  }
}

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t dim : all()) product *= dim;
  return product;
}

Strides contiguous_strides(const Shape& shape) {
  Strides strides{shape.all()};
  std::int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = step;
    step *= shape[i];
  }
  return strides;
}

}  // namespace weft
