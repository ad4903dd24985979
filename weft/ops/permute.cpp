// Doors of the movers. Indices are data: kernels check their range, because only they may read them.
#include "weft/ops/permute.h"

#include "weft/ops/count.h"
#include "weft/ops/door.h"

namespace weft::ops {
namespace {

void check_index(const Door& door, const Tensor& x, const Tensor& index) {
  door.floats("x", x).ranked("x", x, 2, 2);
  door.typed("index", index, Dtype::i32).ranked("index", index, 1, 1).contiguous("index", index);
}

}  // namespace

TopK top_k(const Tensor& x, std::int64_t k) {
  const Door door("top_k", x);
  if (x.dtype() != Dtype::f64) door.typed("x", x, Dtype::f32);
  door.ranked("x", x, 1, Dims::max_rank);
  if (k < 0 || k > x.dim(-1)) door.refuse(Kind::usage, "the ", k, " greatest of ", x.dim(-1), " elements");
  Dims dims = x.shape();
  dims[-1] = k;
  const TopK out{empty(x.device(), Shape(dims), x.dtype()), empty(x.device(), Shape(dims), Dtype::i32)};
  count::pass(x, Work::other, count::add, count::traffic(x, out.values, out.indices));
  x.device().kernels().top_k(out.values, out.indices, x);
  return out;
}

Tensor gather_rows(const Tensor& x, const Tensor& index) {
  const Door door("gather_rows", x);
  check_index(door, x, index);
  Tensor out = empty(x.device(), {index.dim(0), x.dim(1)}, x.dtype());
  count::pass(out, Work::other, count::copy, count::traffic(out, out, index));
  x.device().kernels().gather_rows(out, x, index);
  return out;
}

void scatter_add_rows_into(const Tensor& out, const Tensor& x, const Tensor& index, const Tensor& weight) {
  const Door door("scatter_add_rows", x);
  check_index(door, x, index);
  door.shaped("index", index, {x.dim(0)}).floats("out", out).ranked("out", out, 2, 2);
  if (out.dim(1) != x.dim(1))
    door.refuse(Kind::shape, "out ", out.shape(), " has other rows than x ", x.shape());
  if (weight) door.holds("weight", weight, Dtype::f32, {x.dim(0)});
  count::pass(x, Work::other, count::multiply_add, 3 * count::traffic(x) + count::traffic(index, weight));
  x.device().kernels().scatter_add_rows(out, x, index, weight);
}

}  // namespace weft::ops
