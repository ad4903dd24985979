// A tensor is a typed, shaped, strided window on memory that a device owns.
#pragma once

#include <cstdint>
#include <span>

#include "weft/tensor/device.h"
#include "weft/tensor/dtype.h"
#include "weft/tensor/shape.h"
#include "weft/tensor/storage.h"

namespace weft {

/// A handle: copying shares the memory, const is about the handle.
class Tensor {
 public:
  Tensor() = default;
  Tensor(StorageRef storage, const Shape& shape, Dtype dtype)
      : storage_(std::move(storage)), shape_(shape), strides_(contiguous_strides(shape)), dtype_(dtype) {}

  explicit operator bool() const { return bool(storage_); }
  const Shape& shape() const { return shape_; }
  const Strides& strides() const { return strides_; }
  int rank() const { return shape_.rank(); }
  std::int64_t dim(int i) const { return shape_[i]; }
  std::int64_t stride(int i) const { return strides_[i]; }
  std::int64_t elements() const { return shape_.elements(); }
  std::int64_t bytes() const { return elements() * size_of(dtype_); }
  Dtype dtype() const { return dtype_; }
  Device& device() const;
  const StorageRef& storage() const { return storage_; }
  /// Distance of the first element from the storage's start, in elements.
  std::int64_t offset() const { return offset_; }
  /// True where the elements fill their memory in order.
  bool contiguous() const;

  /// The elements in order, as T. Fails when T is not what the tensor holds, or when it has gaps.
  template <class T>
  std::span<T> as() const {
    check(dtype_of<T>, /*whole=*/true);
    return {static_cast<T*>(address()), std::size_t(elements())};
  }
  /// The first element, as T, for code that walks by strides.
  template <class T>
  T* data() const {
    check(dtype_of<T>, /*whole=*/false);
    return static_cast<T*>(address());
  }
  /// The first element, whatever its type.
  void* address() const;

  /// Same memory, other shape; the elements must lie in order, or only leading dimensions of one step be
  /// merged.
  Tensor view(const Shape& shape) const;
  /// All but the last dimension merged: [t, h].
  Tensor rows() const;
  /// count elements of a dimension, from the given one on.
  Tensor slice(int dim, std::int64_t from, std::int64_t count) const;
  /// Dimension i of the result is dimension order[i] of this.
  Tensor permute(std::initializer_list<int> order) const;
  /// A dimension of size 1 removed: the i-th slice.
  Tensor at(int dim, std::int64_t i) const;
  /// One dimension seen as several whose product it is.
  Tensor split(int dim, const Shape& parts) const;
  /// So many tensors of this shape in the same memory, each `step` elements after the last: [count, ..].
  Tensor row_of(std::int64_t count, std::int64_t step) const;

 private:
  void check(Dtype wanted, bool whole) const;
  StorageRef storage_;
  Shape shape_;
  Strides strides_;
  std::int64_t offset_ = 0;
  Dtype dtype_ = Dtype::f32;
};

/// Memory with whatever is in it.
Tensor empty(Device& device, const Shape& shape, Dtype dtype = Dtype::f32, Use use = Use::activations);
/// Same device, shape (made contiguous) and type.
Tensor empty_like(const Tensor& other, Use use = Use::activations);

}  // namespace weft
