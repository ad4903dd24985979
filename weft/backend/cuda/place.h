// Where a tensor lies on the GPU: an address that the host hands to kernels and libraries and never reads.
#pragma once

#include "weft/base/error.h"
#include "weft/tensor/tensor.h"

namespace weft::cuda {

/// Of the first element.
inline void* place_of(const Tensor& tensor) {
  return tensor.storage()->data() + tensor.offset() * size_of(tensor.dtype());
}

/// The elements, which must lie in order and be of this type; null for an empty tensor.
template <class T>
T* elements(const Tensor& tensor) {
  if (!tensor) return nullptr;
  if (tensor.dtype() != dtype_of<T> || !tensor.contiguous())
    fail(Kind::internal, "cuda: ", tensor.shape(), " of ", tensor.dtype(), " is read as a run of ",
         dtype_of<T>);
  return static_cast<T*>(place_of(tensor));
}

}  // namespace weft::cuda
