// Views that are transposed become Read::transposed here, so that kernels see rows without gaps.
#include "weft/ops/matmul.h"

#include "weft/ops/count.h"
#include "weft/ops/door.h"
#include "weft/ops/elementwise.h"

namespace weft::ops {
namespace {

/// A matrix, or a batch of them, and how to read it.
struct Operand {
  Tensor tensor;
  Read read;
  std::int64_t rows() const { return tensor.dim(read == Read::as_is ? -2 : -1); }
  std::int64_t columns() const { return tensor.dim(read == Read::as_is ? -1 : -2); }
};

Read other(Read read) { return read == Read::as_is ? Read::transposed : Read::as_is; }

Operand straighten(const Door& door, const char* what, const Tensor& tensor, Read read) {
  const bool turned =
      tensor.stride(-1) != 1 && tensor.dim(-1) != 1 && (tensor.stride(-2) == 1 || tensor.dim(-2) == 1);
  if (!turned) {
    door.dense_rows(what, tensor);
    return {tensor, read};
  }
  return {tensor.rank() == 2 ? tensor.permute({1, 0}) : tensor.permute({0, 2, 1}), other(read)};
}

std::string spelled(const Tensor& tensor, Read read) {
  return text(tensor.shape(), read == Read::transposed ? "^T" : "");
}

void check_types(const Door& door, const Tensor& out, const Tensor& a, const Tensor& b) {
  door.floats("a", a).floats("out", out).floats("b", b);
  if (a.dtype() != b.dtype()) door.refuse(Kind::shape, "a is ", a.dtype(), " and b is ", b.dtype());
  if (out.dtype() != a.dtype() && out.dtype() != Dtype::f32)
    door.refuse(Kind::shape, "out is ", out.dtype(), ", neither f32 nor the operands' ", a.dtype());
}

/// Whether a product is one in double: what it is made of are then matrices of any types.
bool check_doubles(const Door& door, const Tensor& out, const Tensor& a, const Tensor& b,
                   const MatmulArgs& how) {
  const auto wide = [](const Tensor& x) { return x.dtype() == Dtype::f64; };
  if (!wide(out) && !wide(a) && !wide(b)) return false;
  const auto known = [&](const char* what, const Tensor& x) {
    if (!wide(x)) door.floats(what, x);
  };
  known("a", a);
  known("b", b);
  if (!wide(out) && out.dtype() != Dtype::f32)
    door.refuse(Kind::shape, "out is ", out.dtype(), ", and a sum in double is stored as f64 or f32");
  door.ranked("a", a, 2, 2);
  if (how.slabs != 1) door.refuse(Kind::shape, how.slabs, " slabs, and a sum in double has none");
  return true;
}

void check_slabs(const Door& door, std::int64_t k, const MatmulArgs& how) {
  if (how.slabs < 1 || k % how.slabs != 0)
    door.refuse(Kind::shape, "k ", k, " cannot be cut into ", how.slabs, " equal slabs");
}

/// No products to add: what is left is zeros, or what was there, and the bias.
void add_nothing(const Tensor& out, const MatmulArgs& how) {
  if (!how.accumulate) fill(out, 0);
  if (how.bias) add_bias_in_place(out.rows(), how.bias);
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, const MatmulArgs& how) {
  const Door door("matmul", a);
  door.given("b", b).ranked("a", a, 2, Dims::max_rank);
  const bool merges = a.rank() > 2 && b.rank() == 2 && how.a == Read::as_is;
  Dims dims = a.shape();
  dims[-2] = merges ? a.dim(-2) : Operand{a, how.a}.rows();
  dims[-1] = Operand{b, how.b}.columns();
  Tensor out = empty(a.device(), Shape(dims), a.dtype());
  if (merges)
    matmul_into(out.rows(), a.rows(), b, how);
  else
    matmul_into(out, a, b, how);
  return out;
}

void matmul_into(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs& how) {
  const Door door("matmul", a);
  door.given("b", b).given("out", out);
  if (!check_doubles(door, out, a, b, how)) check_types(door, out, a, b);
  door.ranked("a", a, 2, 3);
  if (a.rank() != b.rank() || a.rank() != out.rank())
    door.refuse(Kind::shape, a.shape(), " by ", b.shape(), " into ", out.shape(),
                " mixes matrices and batches");
  const Operand left = straighten(door, "a", a, how.a);
  const Operand right = straighten(door, "b", b, how.b);
  const bool one_batch = a.rank() == 2 || (a.dim(0) == b.dim(0) && a.dim(0) == out.dim(0));
  if (!one_batch || left.columns() != right.rows() || out.dim(-2) != left.rows() ||
      out.dim(-1) != right.columns())
    door.refuse(Kind::shape, spelled(a, how.a), " by ", spelled(b, how.b), " does not give ", out.shape());
  door.dense_rows("out", out);
  if (how.bias) door.floats("bias", how.bias, {right.columns()});
  check_slabs(door, left.columns(), how);
  count::product(out, left.columns(),
                 count::traffic(a, b, how.bias, out) + (how.accumulate ? out.bytes() : 0));
  if (out.elements() == 0) return;
  if (left.columns() == 0) return add_nothing(out, how);
  MatmulArgs args = how;
  args.a = left.read;
  args.b = right.read;
  a.device().kernels().matmul(out, left.tensor, right.tensor, args);
}

namespace {

/// A product as kernels see it, whose result an activation reads, or that goes back through one.
struct Through {
  Operand left, right;
  ActivatedArgs how;
};

Through through(const Door& door, const Tensor& a, const Tensor& b, const ActivatedArgs& how) {
  door.given("b", b).ranked("a", a, 2, 2).ranked("b", b, 2, 2);
  check_types(door, a, a, b);
  Through out{straighten(door, "a", a, how.product.a), straighten(door, "b", b, how.product.b), how};
  if (out.left.columns() != out.right.rows())
    door.refuse(Kind::shape, spelled(a, how.product.a), " does not meet ", spelled(b, how.product.b));
  if (how.product.bias) door.floats("bias", how.product.bias, {out.right.columns()});
  if (how.product.accumulate || how.product.slabs != 1)
    door.refuse(Kind::shape, "what an activation follows is one product, and added to nothing");
  out.how.product.a = out.left.read;
  out.how.product.b = out.right.read;
  return out;
}

}  // namespace

bool activates_products(const Tensor& x, Activation f) {
  return x.device().kernels().activates_products(x.dtype(), f);
}

Activated matmul_activated(const Tensor& a, const Tensor& b, const ActivatedArgs& how) {
  const Through it = through(Door("matmul_activated", a), a, b, how);
  const Tensor before = empty(a.device(), {it.left.rows(), it.right.columns()}, a.dtype());
  Activated out{before, empty_like(before)};
  count::product(before, it.left.columns(), count::traffic(a, b, how.product.bias, before, out.after));
  count::pass(before, Work::elementwise, count::activation, 0);
  a.device().kernels().matmul_activated(out.after, before, it.left.tensor, it.right.tensor, it.how);
  return out;
}

Tensor matmul_derived(const Tensor& a, const Tensor& b, const Tensor& before, const ActivatedArgs& how) {
  const Door door("matmul_derived", a);
  const Through it = through(door, a, b, how);
  const Shape shape{it.left.rows(), it.right.columns()};
  door.given("before", before).floats("before", before, shape);
  Tensor out = empty(a.device(), shape, a.dtype());
  count::product(out, it.left.columns(), count::traffic(a, b, before, out));
  count::pass(out, Work::elementwise, count::activation_backward, 0);
  a.device().kernels().matmul_derived(out, before, it.left.tensor, it.right.tensor, it.how);
  return out;
}

void weight_gradient_into(const LinearGrads& grads, const Tensor& dy, const Tensor& x) {
  const auto& [dw, on_top] = grads.dw;
  const Tensor& db = grads.db;
  const Door door("weight_gradient", dy);
  door.given("x", x).given("dw", dw).given("db", db).ranked("dy", dy, 2, 2).ranked("x", x, 2, 2);
  const bool dense = dy.stride(-1) == 1 && x.stride(-1) == 1 && dw.stride(-1) == 1;
  const bool fits = x.dim(0) == dy.dim(0) && dw.shape() == Shape{dy.dim(1), x.dim(1)};
  if (!dense || !fits || dw.elements() == 0 || dy.dim(0) == 0) {  // the two know what to say, or to do
    matmul_into(dw, dy, x, {.a = Read::transposed, .accumulate = on_top});
    return sum_rows_into(db, dy);
  }
  check_types(door, dw, dy, x);
  door.holds("dw", dw, Dtype::f32, dw.shape()).holds("db", db, Dtype::f32, {dy.dim(1)});
  count::product(dw, dy.dim(0), count::traffic(dy, x, dw) + (on_top ? dw.bytes() : 0));
  count::pass(dy, Work::elementwise, count::add, count::traffic(dy, db, db));
  dy.device().kernels().weight_gradient(grads, dy, x);
}

namespace {

/// What the device alone knows follows from a plan of rows, and is believed.
void check_unseen(const Door& door, const Groups& groups, std::int64_t count, const Tensor& a) {
  door.holds("groups.unseen", groups.unseen, Dtype::i64, {count + 1});
  if (!a.device().kernels().multiplies_unseen_groups(a.dtype()))
    door.refuse(Kind::internal, "only the device knows the groups of ", a.dtype(),
                ", and kernels ask the host");
}

void check_groups(const Door& door, const Groups& groups, std::int64_t count, const Tensor& a) {
  if (groups.unseen) return check_unseen(door, groups, count, a);
  const auto& at = groups.offsets;
  if (std::int64_t(at.size()) != count + 1)
    door.refuse(Kind::shape, at.size(), " offsets for ", count, " groups; one more than groups is needed");
  for (std::size_t g = 0; g + 1 < at.size(); ++g)
    if (at[g] > at[g + 1]) door.refuse(Kind::shape, "offsets descend from ", at[g], " to ", at[g + 1]);
  if (at.front() != 0 || at.back() != a.dim(0))
    door.refuse(Kind::shape, "groups cover rows ", at.front(), " to ", at.back(), " of ", a.dim(0));
}

/// a [rows, k] b [groups, k, n] -> out [rows, n]
std::int64_t check_grouped(const Door& door, const Tensor& out, const Tensor& a, const Operand& b) {
  door.ranked("b", b.tensor, 3, 3).ranked("out", out, 2, 2);
  if (a.dim(1) != b.rows() || out.dim(0) != a.dim(0) || out.dim(1) != b.columns())
    door.refuse(Kind::shape, a.shape(), " by groups of ", spelled(b.tensor, b.read), " does not give ",
                out.shape());
  return b.tensor.dim(0);
}

/// a [rows, m] b [rows, n] -> out [groups, m, n]
std::int64_t check_grouped_gradient(const Door& door, const Tensor& out, const Tensor& a, const Operand& b) {
  door.ranked("b", b.tensor, 2, 2).ranked("out", out, 3, 3);
  if (b.read == Read::transposed) door.refuse(Kind::shape, "b cannot be transposed where a is");
  if (a.dim(0) != b.rows() || out.dim(1) != a.dim(1) || out.dim(2) != b.columns())
    door.refuse(Kind::shape, spelled(a, Read::transposed), " by ", b.tensor.shape(),
                " in groups does not give ", out.shape());
  return out.dim(0);
}

}  // namespace

Tensor grouped_matmul(const Tensor& a, const Tensor& b, const Groups& groups, const MatmulArgs& how) {
  const Door door("grouped_matmul", a);
  door.ranked("a", a, 2, 2).ranked("b", b, 3, 3);
  if (how.a == Read::transposed)
    door.refuse(Kind::shape, "a transposed gives weight gradients; use grouped_matmul_into");
  Tensor out = empty(a.device(), {a.dim(0), Operand{b, how.b}.columns()}, a.dtype());
  grouped_matmul_into(out, a, b, groups, how);
  return out;
}

void grouped_matmul_into(const Tensor& out, const Tensor& a, const Tensor& b, const Groups& groups,
                         const MatmulArgs& how) {
  const Door door("grouped_matmul", a);
  door.ranked("a", a, 2, 2).given("b", b);
  check_types(door, out, a, b);
  const Operand right = straighten(door, "b", b, how.b);
  door.dense_rows("a", a).dense_rows("out", out);
  const bool gradient = how.a == Read::transposed;
  const std::int64_t count =
      gradient ? check_grouped_gradient(door, out, a, right) : check_grouped(door, out, a, right);
  check_groups(door, groups, count, a);
  if (how.bias && gradient) door.refuse(Kind::shape, "a weight gradient takes no bias");
  if (how.bias) door.floats("bias", how.bias, {count, right.columns()});
  if (how.slabs != 1) door.refuse(Kind::shape, "products in groups are not cut into slabs");
  a.device().work().add(Work::product, 2 * a.elements() * right.columns(),
                        count::traffic(a, b, how.bias, out) + (how.accumulate ? out.bytes() : 0));
  if (out.elements() == 0) return;
  MatmulArgs args = how;
  args.b = right.read;
  a.device().kernels().grouped_matmul(out, a, right.tensor, groups, args);
}

}  // namespace weft::ops
