// Products: by the library, which is told what it does not add, or in a fixed order; slabs as a tree.
#include <bit>

#include "weft/backend/cuda/chained_products.h"
#include "weft/backend/cuda/fixed_panels.h"
#include "weft/backend/cuda/kernels.h"
#include "weft/backend/cuda/pointwise.h"
#include "weft/backend/cuda/products.h"
#include "weft/backend/cuda/space.h"

namespace weft {
namespace {

using namespace cuda;

struct SumOfThree {
  __device__ __forceinline__ void operator()(const float (&x)[3], float (&y)[1]) const {
    y[0] = x[2] + (x[0] + x[1]);
  }
};

/// Slabs [slabs, m, n] and how many they are: a power of two.
struct Tree {
  Rows out, slabs, bias;
  std::int64_t count, slab;  // elements of a slab
  int of;
  bool accumulate;
};

// As a balanced tree adds: two neighbours as soon as both are there.
__global__ void __launch_bounds__(256) add_tree(Tree job) {
  const std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= job.count) return;
  const auto* parts = reinterpret_cast<const float*>(job.slabs.data);
  float levels[8] = {};
  for (int s = 0; s < job.of; ++s) {
    float x = parts[s * job.slab + i];
    int level = 0;
    for (; s >> level & 1; ++level) x = levels[level] + x;
    levels[level] = x;
  }
  int top = 0;
  while (1 << top < job.of) ++top;
  const std::int64_t row = i / job.out.width, column = i - row * job.out.width;
  const std::int64_t at = start_of(job.out, row) + column * job.out.step;
  float sum = levels[top];
  if (job.accumulate) sum += get(job.out, at);
  if (job.bias.data) sum += get(job.bias, column * job.bias.step);
  put(job.out, at, sum);
}

/// K cut into slabs: [slabs, m, k / slabs] or, to be read transposed, [slabs, k / slabs, m].
Tensor in_slabs(const Tensor& x, int k_dim, std::int64_t slabs) {
  const Tensor cut = x.split(k_dim, {slabs, x.dim(k_dim) / slabs});
  return k_dim == 0 ? cut : cut.permute({1, 0, 2});
}

/// Whether the library may have gelu in this product.
bool takes_gelu(const Tensor& out, const Tensor& before, const ActivatedArgs& how) {
  return how.f == Activation::gelu && is_half(out.dtype()) && out.elements() > 0 &&
         before.dtype() == out.dtype() && before.stride(-1) == 1 && adds_in_product(how.product.bias, out);
}

}  // namespace

void CudaKernels::ready_products() {
  if (products_) return;
  products_ = std::make_unique<Products>();
  product_space_ = workspace({Products::workspace_bytes() + product_space_alignment}, Dtype::u8);
}

void* CudaKernels::product_space() const {
  const auto at = std::bit_cast<std::uintptr_t>(place_of(product_space_));
  constexpr auto to = std::uintptr_t(product_space_alignment);
  return std::bit_cast<void*>((at + to - 1) / to * to);
}

bool CudaKernels::product(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs& how,
                          const ThroughGelu& gelu) {
  if (exact()) return false;
  ready_products();
  return products_->multiply({.out = out,
                              .a = a,
                              .b = b,
                              .read_a = how.a,
                              .read_b = how.b,
                              .accumulate = how.accumulate,
                              .bias = how.bias,
                              .workspace = product_space(),
                              .queue = &queue(),
                              .gelu = gelu});
}

void CudaKernels::in_fixed_order(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs& how) {
  if (!is_half(a.dtype())) return multiply_in_chains(queue(), out, a, b, how);
  warpgroups() ? multiply_in_order_by_warpgroups(queue(), {out, a, b, how})
               : multiply_in_order_by_warps(queue(), {out, a, b, how});
}

void CudaKernels::matmul(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs& how) {
  if (out.elements() == 0) return;
  if (in_doubles(out, a, b)) return multiply_in_chains(queue(), out, a, b, how);
  const std::int64_t k = depth_of(a, how);
  if (how.slabs > 1) return slabs_of(out, a, b, how);
  if (exact()) return in_fixed_order(out, a, b, how);
  if (k > 0 && adds_in_product(how.bias, out)) {
    product(out, a, b, how);
    return;
  }
  const Tensor whole = workspace(out.shape());
  MatmulArgs plain = how;
  plain.bias = {};
  plain.accumulate = false;
  if (k > 0)
    product(whole, a, b, plain);
  else
    fill(whole, 0);
  const Rows to = rows_of(out);
  run_pass<1, 3>(queue(), {to},
                 {rows_of(whole), for_every_row(how.bias, to.count), how.accumulate ? to : Rows{}},
                 SumOfThree{});
}

void CudaKernels::matmul_activated(const Tensor& y, const Tensor& before, const Tensor& a, const Tensor& b,
                                   const ActivatedArgs& how) {
  const bool done = takes_gelu(y, before, how) && product(y, a, b, how.product, {before, false});
  if (!done) Kernels::matmul_activated(y, before, a, b, how);
}

void CudaKernels::matmul_derived(const Tensor& out, const Tensor& before, const Tensor& a, const Tensor& b,
                                 const ActivatedArgs& how) {
  const bool done = takes_gelu(out, before, how) && product(out, a, b, how.product, {before, true});
  if (!done) Kernels::matmul_derived(out, before, a, b, how);
}

// The library gives the sums by themselves.
void CudaKernels::weight_gradient(const LinearGrads& grads, const Tensor& dy, const Tensor& x) {
  const auto& [dw, on_top] = grads.dw;
  if (!exact() && is_half(dy.dtype())) {
    ready_products();
    const Tensor fresh = workspace({dw.dim(0)});
    Products::Call call{dw, dy, x, Read::transposed, Read::as_is, on_top, {}, product_space(), &queue()};
    call.sums = fresh;
    if (products_->multiply(call)) return add(grads.db, grads.db, fresh);
  }
  Kernels::weight_gradient(grads, dy, x);
}

void CudaKernels::slabs_of(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs& how) {
  if (out.rank() == 3) {
    for (std::int64_t i = 0; i < out.dim(0); ++i) slabs_of(out.at(0, i), a.at(0, i), b.at(0, i), how);
    return;
  }
  if (how.slabs > 128 || (how.slabs & (how.slabs - 1)) != 0)
    fail(Kind::device, "matmul: ", how.slabs, " slabs, and a GPU adds 2, 4, ... or 128 as a tree");
  const Tensor parts = workspace({how.slabs, out.dim(0), out.dim(1)});
  const bool turned_a = how.a == Read::transposed, turned_b = how.b == Read::transposed;
  matmul(parts, in_slabs(a, turned_a ? 0 : 1, how.slabs), in_slabs(b, turned_b ? 1 : 0, how.slabs),
         {.a = how.a, .b = how.b});
  const Tree job{rows_of(out),   rows_of(parts), rows_of(how.bias), out.elements(),
                 out.elements(), how.slabs,      how.accumulate};
  gpu::launch(queue(), {(job.count + 255) / 256, 256}, add_tree, job);
}

}  // namespace weft
