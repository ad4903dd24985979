// Without its address an element has no number, so a missing one is refused.
#include "weft/ops/dropout_door.h"

namespace weft::ops {

void check_probability(const Door& door, float probability) {
  if (!(probability >= 0 && probability < 1))
    door.refuse(Kind::usage, "a dropout probability of ", probability, " is not in [0, 1)");
}

void check_dropout(const Door& door, const Tensor& x, const DropoutArgs& how) {
  check_probability(door, how.probability);
  if (how.probability == 0) return;
  door.ranked("x", x, 3, 3);
  door.holds("samples", how.samples, Dtype::i64, {x.dim(1)});
  door.holds("positions", how.positions, Dtype::i32, {x.dim(0)});
  door.contiguous("samples", how.samples).contiguous("positions", how.positions);
  if (how.channel < 0 || how.channel > how.width - x.dim(2))
    door.refuse(Kind::shape, "channels ", how.channel, " to ", how.channel + x.dim(2), " are not among ",
                how.width);
}

}  // namespace weft::ops
