// Between tensors and the host's vectors, whatever device holds the tensor.
#pragma once

#include <vector>

#include "weft/tensor/tensor.h"

namespace weft {

/// Fails unless T is what the tensor holds; gaps are skipped.
template <class T>
std::vector<T> to_host(const Tensor& tensor);
/// Into the caller's memory, which is as long. The host waits once, whatever the gaps.
template <class T>
void read(const Tensor& tensor, std::span<T> into);
/// The same, and the host does not wait: the numbers are there behind the fence.
template <class T>
Fence ask_for(const Tensor& tensor, std::span<T> into);
/// Any float or integer type, as numbers.
std::vector<double> numbers(const Tensor& tensor);
/// The only element. 0 on a device that holds no numbers.
double number(const Tensor& tensor);

template <class T>
void copy_to(const Tensor& tensor, std::span<const T> values);
template <class T>
Tensor from_host(Device& device, const Shape& shape, std::span<const T> values, Use use = Use::activations);
template <class T>
Tensor from_host(Device& device, const Shape& shape, const std::vector<T>& values,
                 Use use = Use::activations) {
  return from_host(device, shape, std::span<const T>(values), use);
}

}  // namespace weft
