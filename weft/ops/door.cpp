#include "weft/ops/door.h"

namespace weft::ops {

Door::Door(const char* op, const Tensor& first) : op_(op), device_(nullptr) {
  if (!first) refuse(Kind::shape, "the first operand has no memory");
  device_ = &first.device();
}

const Door& Door::given(const char* what, const Tensor& tensor) const {
  if (!tensor) refuse(Kind::shape, what, " has no memory");
  if (&tensor.device() != device_)
    refuse(Kind::device, what, " is on another device (", tensor.device().name(),
           ") than the first operand (", device_->name(), ")");
  return *this;
}

const Door& Door::floats(const char* what, const Tensor& tensor) const {
  given(what, tensor);
  if (!is_float(tensor.dtype())) refuse(Kind::shape, what, " is ", tensor.dtype(), ", not f32, bf16 or f16");
  return *this;
}

const Door& Door::floats(const char* what, const Tensor& tensor, const Shape& shape) const {
  return floats(what, tensor).shaped(what, tensor, shape);
}

const Door& Door::holds(const char* what, const Tensor& tensor, Dtype dtype, const Shape& shape) const {
  return given(what, tensor).typed(what, tensor, dtype).shaped(what, tensor, shape);
}

const Door& Door::typed(const char* what, const Tensor& tensor, Dtype dtype) const {
  given(what, tensor);
  if (tensor.dtype() != dtype) refuse(Kind::shape, what, " is ", tensor.dtype(), ", not ", dtype);
  return *this;
}

const Door& Door::ranked(const char* what, const Tensor& tensor, int least, int most) const {
  given(what, tensor);
  if (tensor.rank() >= least && tensor.rank() <= most) return *this;
  if (least == most)
    refuse(Kind::shape, what, " ", tensor.shape(), " has ", tensor.rank(), " dimensions, not ", least);
  refuse(Kind::shape, what, " ", tensor.shape(), " has ", tensor.rank(), " dimensions, not ", least, " to ",
         most);
}

const Door& Door::shaped(const char* what, const Tensor& tensor, const Shape& shape) const {
  if (tensor.shape() != shape) refuse(Kind::shape, what, " is ", tensor.shape(), ", not ", shape);
  return *this;
}

const Door& Door::dense_rows(const char* what, const Tensor& tensor) const {
  if (tensor.rank() > 0 && tensor.dim(-1) > 1 && tensor.stride(-1) != 1)
    refuse(Kind::shape, what, " ", tensor.shape(), " with strides ", tensor.strides(),
           " has gaps in its last dimension; copy it with ops::contiguous first");
  return *this;
}

const Door& Door::contiguous(const char* what, const Tensor& tensor) const {
  if (!tensor.contiguous())
    refuse(Kind::shape, what, " ", tensor.shape(), " with strides ", tensor.strides(),
           " has gaps; copy it with ops::contiguous first");
  return *this;
}

}  // namespace weft::ops
