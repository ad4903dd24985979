// Doors of the updates.
#include "weft/ops/adam.h"

#include "weft/ops/count.h"
#include "weft/ops/door.h"

namespace weft::ops {
namespace {

void check_flat(const Door& door, const char* what, const Tensor& tensor, const Tensor& master) {
  door.floats(what, tensor, master.shape()).contiguous(what, tensor);
}

void check_master(const Door& door, const Tensor& master, const Tensor& copy, const Tensor& grad) {
  door.typed("master", master, Dtype::f32).ranked("master", master, 1, 1).contiguous("master", master);
  check_flat(door, "grad", grad, master);
  if (copy) check_flat(door, "copy", copy, master);
}

void check_moment(const Door& door, const char* what, const Tensor& moment, const Tensor& master) {
  door.typed(what, moment, Dtype::f32);
  check_flat(door, what, moment, master);
}

}  // namespace

void adam_into(const AdamState& state, const Tensor& grad, const AdamArgs& how) {
  const Door door("adam", state.master);
  check_master(door, state.master, state.copy, grad);
  check_moment(door, "m", state.m, state.master);
  check_moment(door, "v", state.v, state.master);
  if (!(how.correction1 > 0 && how.correction2 > 0))
    door.refuse(Kind::usage, "bias corrections ", how.correction1, " and ", how.correction2,
                " must be positive");
  count::pass(grad, Work::optimizer, count::adam,
              2 * count::traffic(state.master, state.m, state.v) + count::traffic(state.copy, grad));
  grad.device().kernels().adam(state, grad, how);
}

void sgd_into(const SgdState& state, const Tensor& grad, const SgdArgs& how) {
  const Door door("sgd", state.master);
  check_master(door, state.master, state.copy, grad);
  if (state.momentum) check_moment(door, "momentum", state.momentum, state.master);
  if (how.momentum != 0 && !state.momentum)
    door.refuse(Kind::usage, "a momentum of ", how.momentum, " needs memory to keep it in");
  count::pass(grad, Work::optimizer, count::sgd,
              2 * count::traffic(state.master, state.momentum) + count::traffic(state.copy, grad));
  grad.device().kernels().sgd(state, grad, how);
}

}  // namespace weft::ops
