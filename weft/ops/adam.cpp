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

void check_any_moment(const Door& door, const char* what, const Tensor& moment, const Tensor& master) {
  door.given(what, moment);
  if (!is_float(moment.dtype()) && moment.dtype() != Dtype::f8e5m2)
    door.refuse(Kind::shape, what, " is ", name(moment.dtype()),
                ", and f32, bf16, f16 or f8e5m2 is expected");
  door.shaped(what, moment, master.shape()).contiguous(what, moment);
}

void check_signs(const Door& door, const Tensor& bits, const Tensor& x, const Tensor& size) {
  check_moment(door, "x", x, x);
  door.ranked("x", x, 1, 1);
  if (x.elements() % 8 != 0)
    door.refuse(Kind::shape, "x has ", x.elements(), " elements, which are no whole bytes of signs");
  door.holds("bits", bits, Dtype::u8, {x.elements() / 8}).contiguous("bits", bits);
  door.holds("size", size, Dtype::f32, {1});
}

void check_corrections(const Door& door, const AdamArgs& how) {
  if (!(how.correction1 > 0 && how.correction2 > 0))
    door.refuse(Kind::usage, "bias corrections ", how.correction1, " and ", how.correction2,
                " must be positive");
}

}  // namespace

void adam_into(const AdamState& state, const Tensor& grad, const AdamArgs& how) {
  const Door door("adam", state.master);
  check_master(door, state.master, state.copy, grad);
  check_any_moment(door, "m", state.m, state.master);
  check_any_moment(door, "v", state.v, state.master);
  check_corrections(door, how);
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

void lion_into(const SgdState& state, const Tensor& grad, const LionArgs& how) {
  const Door door("lion", state.master);
  check_master(door, state.master, state.copy, grad);
  check_moment(door, "momentum", state.momentum, state.master);
  count::pass(grad, Work::optimizer, count::lion,
              2 * count::traffic(state.master, state.momentum) + count::traffic(state.copy, grad));
  grad.device().kernels().lion(state, grad, how);
}

void adam_direction_into(const AdamState& state, const Tensor& grad, const AdamArgs& how) {
  const Door door("adam direction", state.master);
  check_master(door, state.master, state.copy, grad);
  check_moment(door, "m", state.m, state.master);
  check_moment(door, "v", state.v, state.master);
  check_moment(door, "grad", grad, state.master);
  check_corrections(door, how);
  count::pass(grad, Work::optimizer, count::adam,
              count::traffic(state.master) + 2 * count::traffic(state.m, state.v, grad));
  grad.device().kernels().adam_direction(state, grad, how);
}

void descend_into(const Tensor& master, const Tensor& copy, const Tensor& x, const DescentArgs& how) {
  const Door door("descend", master);
  check_master(door, master, copy, x);
  door.typed("x", x, Dtype::f32);
  if (how.by) door.holds("by", how.by, Dtype::f32, {1});
  count::pass(x, Work::optimizer, 2 * count::multiply_add, count::traffic(master, master, copy, x, how.by));
  x.device().kernels().descend(master, copy, x, how);
}

void root_into(const Tensor& out, const Tensor& x, float epsilon) {
  const Door door("root", out);
  check_moment(door, "out", out, out);
  check_moment(door, "x", x, out);
  count::pass(x, Work::optimizer, count::root, count::traffic(out, x));
  x.device().kernels().root(out, x, epsilon);
}

void take_signs_into(const Tensor& bits, const Tensor& x, const Tensor& size) {
  const Door door("take signs", x);
  check_signs(door, bits, x, size);
  count::pass(x, Work::optimizer, count::add, count::traffic(bits, x, x));
  x.device().kernels().take_signs(bits, x, size);
}

void add_signs_into(const Tensor& out, const Tensor& bits, const Tensor& size, float share) {
  const Door door("add signs", out);
  check_signs(door, bits, out, size);
  count::pass(out, Work::optimizer, count::add, count::traffic(bits, out, out));
  out.device().kernels().add_signs(out, bits, size, share);
}

}  // namespace weft::ops
