// Shapes and strides: small values, no memory of their own.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>

namespace weft {

/// A list of at most six numbers; the common part of Shape and Strides.
class Dims {
 public:
  static constexpr int max_rank = 6;
  Dims() = default;
  Dims(std::initializer_list<std::int64_t> dims) : Dims(std::span(dims.begin(), dims.size())) {}
  explicit Dims(std::span<const std::int64_t> dims);

  int rank() const { return rank_; }
  /// Negative numbers count from the end.
  std::int64_t operator[](int i) const { return dims_[std::size_t(i < 0 ? i + rank_ : i)]; }
  std::int64_t& operator[](int i) { return dims_[std::size_t(i < 0 ? i + rank_ : i)]; }
  std::span<const std::int64_t> all() const { return {dims_.data(), std::size_t(rank_)}; }
  void push_back(std::int64_t dim);
  bool operator==(const Dims&) const = default;

 private:
  std::array<std::int64_t, max_rank> dims_{};
  int rank_ = 0;
};
std::ostream& operator<<(std::ostream& out, const Dims& dims);

/// Sizes by dimension. Making one fails where a size is negative or the product does not fit 63 bits.
class Shape : public Dims {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) : Shape(Dims(dims)) {}
  explicit Shape(const Dims& dims);
  std::int64_t elements() const;
};

/// Steps by dimension, counted in elements.
class Strides : public Dims {
 public:
  using Dims::Dims;
};

/// The strides of a tensor that fills its memory, last dimension fastest.
Strides contiguous_strides(const Shape& shape);

}  // namespace weft
