// Doors of the embedding. Shapes are flattened here: kernels see ids [t] and rows [t, h].
#include "weft/ops/embedding.h"

#include "weft/ops/count.h"
#include "weft/ops/door.h"

namespace weft::ops {
namespace {

Shape rows_of(const Tensor& ids, std::int64_t h) {
  Dims dims = ids.shape();
  dims.push_back(h);
  return Shape(dims);
}

void check_rows(const Door& door, const Tensor& rows, const Tensor& table, const Tensor& ids,
                std::int64_t first) {
  door.floats("table", table).ranked("table", table, 2, 2);
  door.typed("ids", ids, Dtype::i32).ranked("ids", ids, 1, Dims::max_rank - 1).contiguous("ids", ids);
  door.floats("rows", rows, rows_of(ids, table.dim(1)));
  if (first < 0) door.refuse(Kind::shape, "the table starts at row ", first);
}

}  // namespace

Tensor gather(const Tensor& table, const Tensor& ids, std::int64_t first) {
  const Door door("gather", table);
  door.ranked("table", table, 2, 2).ranked("ids", ids, 1, Dims::max_rank - 1);
  Tensor out = empty(table.device(), rows_of(ids, table.dim(1)), table.dtype());
  check_rows(door, out, table, ids, first);
  count::pass(out, Work::embedding, count::copy, count::traffic(out, out, ids));
  table.device().kernels().gather(out.rows(), table, ids.view({ids.elements()}), first);
  return out;
}

void scatter_add_into(const Tensor& dtable, const Tensor& dout, const Tensor& ids, std::int64_t first) {
  const Door door("scatter_add", dtable);
  door.typed("dtable", dtable, Dtype::f32);
  check_rows(door, dout, dtable, ids, first);
  count::pass(dout, Work::embedding, count::add, 3 * count::traffic(dout) + count::traffic(ids));
  dtable.device().kernels().scatter_add(dtable, dout.rows(), ids.view({ids.elements()}), first);
}

}  // namespace weft::ops
