// Views are arithmetic on shape, strides and offset; nothing here touches an element.
#include "weft/tensor/tensor.h"

#include "weft/base/error.h"

namespace weft {
namespace {

/// Strides under which `shape` walks the same elements in the same order as (from, strides), or false.
bool restride(const Shape& from, const Strides& strides, const Shape& to, Strides& out) {
  out = contiguous_strides(to);
  if (to.elements() == 0) return true;
  int i = 0;
  int j = 0;
  while (i < from.rank() || j < to.rank()) {
    // A run of dimensions on both sides with equal products.
    int first_i = i;
    int first_j = j;
    std::int64_t a = i < from.rank() ? from[i++] : 1;
    std::int64_t b = j < to.rank() ? to[j++] : 1;
    while (a != b) {
      if (a < b)
        a *= from[i++];
      else
        b *= to[j++];
    }
    while (i < from.rank() && from[i] == 1) ++i;
    while (j < to.rank() && to[j] == 1) ++j;
    // Within the run the source must step evenly.
    std::int64_t step = -1;
    std::int64_t expected = 0;
    for (int k = i - 1; k >= first_i; --k) {
      if (from[k] == 1) continue;
      if (step >= 0 && strides[k] != expected) return false;
      if (step < 0) step = strides[k];
      expected = strides[k] * from[k];
    }
    if (step < 0) step = 1;
    for (int k = j - 1; k >= first_j; --k) {
      out[k] = step;
      step *= to[k];
    }
  }
  return true;
}

}  // namespace

Device& Tensor::device() const {
  if (!storage_) fail(Kind::internal, "tensor: asked for its device before it was given memory");
  return storage_->device();
}

bool Tensor::contiguous() const {
  std::int64_t step = 1;
  for (int i = rank() - 1; i >= 0; --i) {
    if (shape_[i] != 1 && strides_[i] != step) return false;
    step *= shape_[i];
  }
  return true;
}

void* Tensor::address() const {
  if (!storage_) fail(Kind::internal, "tensor: read before it was given memory");
  std::byte* first = storage_->data();
  if (first && !device().host_visible())
    fail(Kind::internal, "tensor: ", shape_, " lies on ", device().name(),
         ", where the host does not read; copy it with weft/tensor/host.h");
  return first ? first + offset_ * size_of(dtype_) : nullptr;
}

void Tensor::check(Dtype wanted, bool whole) const {
  if (wanted != dtype_)
    fail(Kind::internal, "tensor: ", shape_, " holds ", name(dtype_), ", read as ", name(wanted));
  if (whole && !contiguous())
    fail(Kind::shape, "tensor: ", shape_, " with strides ", strides_,
         " has gaps and cannot be read as one run");
}

Tensor Tensor::view(const Shape& shape) const {
  Strides strides;
  if (shape.elements() != elements() || !restride(shape_, strides_, shape, strides))
    fail(Kind::shape, "view: ", shape_, " with strides ", strides_, " cannot be seen as ", shape);
  Tensor out = *this;
  out.shape_ = shape;
  out.strides_ = strides;
  return out;
}

Tensor Tensor::rows() const {
  if (rank() == 0) fail(Kind::shape, "rows: a tensor with no dimensions has no rows");
  std::int64_t count = 1;
  for (int i = 0; i + 1 < rank(); ++i) count *= shape_[i];
  return view({count, shape_[-1]});
}

Tensor Tensor::slice(int dim, std::int64_t from, std::int64_t count) const {
  const int i = dim < 0 ? dim + rank() : dim;
  if (i < 0 || i >= rank() || from < 0 || count < 0 || from > shape_[i] - count)
    fail(Kind::shape, "slice: ", shape_, " has no elements ", from, " to ", from + count, " in dimension ",
         dim);
  Tensor out = *this;
  out.offset_ += from * strides_[i];
  out.shape_[i] = count;
  return out;
}

Tensor Tensor::permute(std::initializer_list<int> order) const {
  if (int(order.size()) != rank())
    fail(Kind::shape, "permute: ", order.size(), " dimensions named for ", shape_);
  Tensor out = *this;
  unsigned seen = 0;
  int i = 0;
  for (const int from : order) {
    if (from < 0 || from >= rank() || (seen >> from & 1U))
      fail(Kind::shape, "permute: dimension ", from, " of ", shape_, " is missing or named twice");
    seen |= 1U << from;
    out.shape_[i] = shape_[from];
    out.strides_[i++] = strides_[from];
  }
  return out;
}

Tensor Tensor::at(int dim, std::int64_t i) const {
  const int gone = dim < 0 ? dim + rank() : dim;
  Tensor out = slice(dim, i, 1);
  Dims shape;
  Strides strides;
  for (int k = 0; k < rank(); ++k) {
    if (k == gone) continue;
    shape.push_back(shape_[k]);
    strides.push_back(strides_[k]);
  }
  out.shape_ = Shape(shape);
  out.strides_ = strides;
  return out;
}

Tensor Tensor::split(int dim, const Shape& parts) const {
  const int cut = dim < 0 ? dim + rank() : dim;
  if (cut < 0 || cut >= rank() || parts.elements() != shape_[cut])
    fail(Kind::shape, "split: dimension ", dim, " of ", shape_, " is not ", parts);
  Dims shape;
  Strides strides;
  const Strides inner = contiguous_strides(parts);
  for (int k = 0; k < rank(); ++k) {
    if (k != cut) {
      shape.push_back(shape_[k]);
      strides.push_back(strides_[k]);
      continue;
    }
    for (int p = 0; p < parts.rank(); ++p) {
      shape.push_back(parts[p]);
      strides.push_back(inner[p] * strides_[k]);
    }
  }
  Tensor out = *this;
  out.shape_ = Shape(shape);
  out.strides_ = strides;
  return out;
}

Tensor Tensor::row_of(std::int64_t count, std::int64_t step) const {
  std::int64_t last = offset_ + (count - 1) * step;
  for (int k = 0; k < rank(); ++k) last += (shape_[k] - 1) * strides_[k];
  if (count < 1 || step < 0 || elements() == 0 || (last + 1) * size_of(dtype_) > storage_->bytes())
    fail(Kind::shape, "row_of: ", count, " tensors ", shape_, ", ", step,
         " elements apart, are not in memory");
  Dims shape;
  Strides strides;
  shape.push_back(count);
  strides.push_back(step);
  for (int k = 0; k < rank(); ++k) {
    shape.push_back(shape_[k]);
    strides.push_back(strides_[k]);
  }
  Tensor out = *this;
  out.shape_ = Shape(shape);
  out.strides_ = strides;
  return out;
}

Tensor empty(Device& device, const Shape& shape, Dtype dtype, Use use) {
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(shape.elements(), size_of(dtype), &bytes))
    fail(Kind::shape, "empty: ", shape, " of ", name(dtype), " has more bytes than 63 bits can count");
  return {device.allocate(bytes, use), shape, dtype};
}

Tensor empty_like(const Tensor& other, Use use) {
  return empty(other.device(), other.shape(), other.dtype(), use);
}

}  // namespace weft
