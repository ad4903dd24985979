#include "weft/ops/rope.h"

#include "weft/ops/count.h"
#include "weft/ops/door.h"

namespace weft::ops {

void rope_in_place(const Tensor& x, const RopeArgs& how) {
  const Door door("rope", x);
  door.floats("x", x).ranked("x", x, 3, Dims::max_rank).dense_rows("x", x);
  door.typed("angles", how.angles, Dtype::f32)
      .ranked("angles", how.angles, 3, 3)
      .contiguous("angles", how.angles);
  if (how.angles.dim(2) != 2 || 2 * how.angles.dim(1) > x.dim(-1))
    door.refuse(Kind::shape, "angles ", how.angles.shape(), " do not fit the ", x.dim(-1), " channels of x");
  if (how.positions) {
    door.typed("positions", how.positions, Dtype::i32).ranked("positions", how.positions, 1, 2);
    door.shaped("positions", how.positions,
                how.positions.rank() == 1 ? Shape{x.dim(0)} : Shape{x.dim(1), x.dim(0)});
  } else if (x.dim(0) > how.angles.dim(0)) {
    door.refuse(Kind::shape, x.dim(0), " steps, but angles for ", how.angles.dim(0), " positions");
  }
  const std::int64_t turned = x.dim(-1) == 0 ? 0 : x.bytes() / x.dim(-1) * 2 * how.angles.dim(1);
  count::pass(x, Work::elementwise, count::rope, 2 * turned + count::traffic(how.positions));
  x.device().kernels().rope(x, how);
}

}  // namespace weft::ops
