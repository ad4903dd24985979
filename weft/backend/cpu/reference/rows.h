// Reading and writing tensors of any type and any strides as rows of doubles: all that the plain loops need.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weft/tensor/tensor.h"

namespace weft::reference {

/// The last dimension of a tensor, for every index of the leading ones in order.
class LoadedRows {
 public:
  explicit LoadedRows(const Tensor& tensor);
  std::int64_t count() const { return count_; }
  std::int64_t width() const { return width_; }

  void load(std::int64_t row, std::span<double> out) const { load_(at(row), step_, out); }
  std::vector<double> load(std::int64_t row) const;
  /// Rounds once, to the tensor's type; integers toward zero, as far as they reach.
  void store(std::int64_t row, std::span<const double> in) const { store_(at(row), step_, in); }

 private:
  std::byte* at(std::int64_t row) const;
  std::byte* first_;
  std::int64_t size_, count_, width_, step_;
  Shape shape_;
  Strides strides_;
  void (*load_)(const std::byte*, std::int64_t step, std::span<double>);
  void (*store_)(std::byte*, std::int64_t step, std::span<const double>);
};

/// All elements in order.
std::vector<double> load(const Tensor& tensor);
/// All elements, or zeros where the tensor is empty.
std::vector<double> load_or_zeros(const Tensor& tensor, std::int64_t count);
void store(const Tensor& tensor, std::span<const double> values);

}  // namespace weft::reference
