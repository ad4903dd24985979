// The checks at an op's door: who, what was found, what was expected. For ops' own .cpp files.
#pragma once

#include "weft/tensor/tensor.h"

namespace weft::ops {

/// Every tensor of one call passes by here; a refusal names the op and the tensor.
class Door {
 public:
  /// first says on which device the others must be.
  Door(const char* op, const Tensor& first);

  /// Has memory on this device, and elements that lie by strides.
  const Door& given(const char* what, const Tensor& tensor) const;
  /// given, and f32, bf16 or f16.
  const Door& floats(const char* what, const Tensor& tensor) const;
  /// floats of a shape.
  const Door& floats(const char* what, const Tensor& tensor, const Shape& shape) const;
  /// given, of one type and shape.
  const Door& holds(const char* what, const Tensor& tensor, Dtype dtype, const Shape& shape) const;
  const Door& typed(const char* what, const Tensor& tensor, Dtype dtype) const;
  const Door& ranked(const char* what, const Tensor& tensor, int least, int most) const;
  const Door& shaped(const char* what, const Tensor& tensor, const Shape& shape) const;
  /// Where the last dimension must have step 1.
  const Door& dense_rows(const char* what, const Tensor& tensor) const;
  const Door& contiguous(const char* what, const Tensor& tensor) const;

  template <class... Parts>
  [[noreturn]] void refuse(At at, const Parts&... parts) const {
    fail(at, op_, ": ", parts...);
  }

 private:
  const char* op_;
  const Device* device_;
};

}  // namespace weft::ops
