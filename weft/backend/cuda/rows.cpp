#include "weft/backend/cuda/rows.h"

#include <bit>

namespace weft::cuda {

Rows rows_of(const Tensor& tensor) {
  Rows out;
  if (!tensor) return out;
  const int rank = tensor.rank();
  out.data = static_cast<unsigned char*>(place_of(tensor));
  out.dtype = tensor.dtype();
  out.width = rank == 0 ? 1 : tensor.dim(-1);
  out.step = rank == 0 ? 1 : tensor.stride(-1);
  out.count = out.width == 0 ? 0 : tensor.elements() / out.width;
  for (int d = 0; d + 1 < rank; ++d) {
    if (tensor.dim(d) == 1) continue;
    if (out.rank > 0 && out.strides[out.rank - 1] == tensor.dim(d) * tensor.stride(d)) {
      out.sizes[out.rank - 1] *= tensor.dim(d);
      out.strides[out.rank - 1] = tensor.stride(d);
      continue;
    }
    out.sizes[out.rank] = tensor.dim(d);
    out.strides[out.rank++] = tensor.stride(d);
  }
  out.vector = out.step == 1 && std::bit_cast<std::uintptr_t>(out.data) % 16 == 0;
  for (int d = 0; d < out.rank; ++d) out.vector = out.vector && out.strides[d] % 8 == 0;
  return out;
}

Rows for_every_row(const Tensor& x, std::int64_t count) {
  Rows out = rows_of(x);
  out.count = count;
  out.rank = 0;
  out.strides[0] = 0;
  return out;
}

Rows for_every_column(const Tensor& x, std::int64_t width) {
  Rows out = rows_of(x);
  if (out.rank == Rows::most) fail(Kind::internal, "cuda: rows of a tensor ", x.shape(), " one by one");
  out.vector = false;
  // Its rows' elements become rows of their own.
  out.sizes[out.rank] = out.width;
  out.strides[out.rank++] = out.step;
  out.count *= out.width;
  out.width = width;
  out.step = 0;
  return out;
}

}  // namespace weft::cuda
