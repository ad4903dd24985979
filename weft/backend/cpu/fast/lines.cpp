#include "weft/backend/cpu/fast/lines.h"

#include <algorithm>

namespace weft::fast {

Type type_of(Dtype dtype) {
  return dtype == Dtype::bf16 ? Type::bf16 : dtype == Dtype::f16 ? Type::f16 : Type::f32;
}

bool all_floats(std::initializer_list<const Tensor*> tensors) {
  for (const Tensor* tensor : tensors)
    if (*tensor && !is_float(tensor->dtype())) return false;
  return true;
}

bool in_lines(std::initializer_list<const Tensor*> tensors) {
  for (const Tensor* tensor : tensors)
    if (*tensor && tensor->rank() > 0 && tensor->dim(-1) > 1 && tensor->stride(-1) != 1) return false;
  return true;
}

bool ready(std::initializer_list<const Tensor*> tensors) { return all_floats(tensors) && in_lines(tensors); }

Lines::Lines(const Tensor& tensor) {
  if (!tensor) return;
  first_ = static_cast<std::byte*>(tensor.address());
  size_ = size_of(tensor.dtype());
  type_ = type_of(tensor.dtype());
  width_ = tensor.rank() == 0 ? 1 : tensor.dim(-1);
  count_ = 1;
  shape_ = tensor.shape();
  strides_ = tensor.strides();
  // Lines are evenly spaced where each leading dimension steps over the whole of the one inside it.
  std::int64_t expected = -1;
  for (int i = tensor.rank() - 2; i >= 0; --i) {
    count_ *= tensor.dim(i);
    if (tensor.dim(i) == 1) continue;
    if (expected < 0)
      step_ = tensor.stride(i);
    else if (tensor.stride(i) != expected)
      even_ = false;
    expected = tensor.stride(i) * tensor.dim(i);
  }
}

Lines::Lines(const Tensor& result, std::initializer_list<const Tensor*> read) : Lines(result) {
  const bool aligned =
      reinterpret_cast<std::uintptr_t>(first_) % 64 == 0 && (count_ == 1 || step_ * size_ % 64 == 0);
  past_ = even_ && aligned && count_ * width_ * size_ >= past_the_caches;
  for (const Tensor* tensor : read)
    if (*tensor && tensor->address() == first_) past_ = false;
}

std::int64_t Lines::offset(std::int64_t line) const {
  if (even_) return line * step_;
  std::int64_t offset = 0;
  for (int i = shape_.rank() - 2; i >= 0; --i) {
    offset += line % shape_[i] * strides_[i];
    line /= shape_[i];
  }
  return offset;
}

namespace {
/// The one asked for, or an empty one.
const Tensor& one_of(std::initializer_list<const Tensor*> tensors, std::size_t i, const Tensor& none) {
  return i < tensors.size() ? *tensors.begin()[i] : none;
}
}  // namespace

Together::Together(std::initializer_list<const Tensor*> tensors)
    : lines_{Lines(one_of(tensors, 0, {})), Lines(one_of(tensors, 1, {})), Lines(one_of(tensors, 2, {}))} {
  past_ = Lines(one_of(tensors, 0, {}), {&one_of(tensors, 1, {}), &one_of(tensors, 2, {})}).past();
  std::size_t i = 0;
  for (const Tensor* tensor : tensors) {
    sizes_[i++] = size_of(tensor->dtype());
    flat_ = flat_ && tensor->contiguous();
  }
  elements_ = lines_[0].elements();
  width_ = flat_ ? stretch : lines_[0].width();
  pieces_ = flat_ ? (elements_ + stretch - 1) / stretch : lines_[0].count();
}

std::int64_t Together::count(std::int64_t piece) const {
  return flat_ ? std::min(stretch, elements_ - piece * stretch) : width_;
}

std::byte* Together::at(int tensor, std::int64_t piece) const {
  const Lines& lines = lines_[std::size_t(tensor)];
  return flat_ ? lines.at(0) + piece * stretch * sizes_[std::size_t(tensor)] : lines.at(piece);
}

}  // namespace weft::fast
