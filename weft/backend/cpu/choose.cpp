// The chain of kernels: reference, then our own vector loops, with a library's products where they are
// faster.
#include "weft/backend/cpu/choose.h"

#include "weft/backend/cpu/fast/attention.h"
#include "weft/backend/cpu/fast/doubles.h"
#include "weft/backend/cpu/fast/kernels.h"
#include "weft/backend/cpu/onednn/engine.h"
#include "weft/backend/cpu/product/scaled.h"
#include "weft/backend/cpu/reference/kernels.h"
#include "weft/base/error.h"

namespace weft {
namespace {

using fast::InstructionSet;
using fast::Type;

class ProductKernels final : public FastKernels {
 public:
  ProductKernels(product::Products products, int threads)
      : FastKernels(threads), products_(std::move(products)) {}
  const char* name() const override { return "cpu"; }
  void matmul(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulArgs& how) override {
    if (fast::in_doubles(out, a, b)) return fast::product_in_doubles(out, a, b, how, threads());
    products_.matmul(out, a, b, how);
  }
  void grouped_matmul(const Tensor& out, const Tensor& a, const Tensor& b, const Groups& groups,
                      const MatmulArgs& how) override {
    products_.grouped_matmul(out, a, b, groups, how);
  }
  void scaled_matmul(const Tensor& out, const Tensor& a, const Tensor& b, const ScaledArgs& how) override {
    const product::InBf16 wide = product::in_bf16(out, a);
    product::widen(wide, a, b, how, threads());
    products_.matmul(wide.sums, wide.a, wide.b, product::sums_in_bf16());
    product::finish(out, wide.sums, how, threads());
  }

  void attention(const AttentionOut& out, const Attended& in, const AttentionArgs& how) override {
    fast::attention(attention_, out, in, how);
  }
  void attention_backward(const AttentionGrads& grads, const Tensor& dout, const AttentionOut& out,
                          const Attended& in, const AttentionArgs& how) override {
    fast::attention_backward(attention_, grads, dout, out, in, how);
  }
  void merge_attention(const AttentionOut& into, const AttentionOut& part) override {
    fast::merge_attention(attention_, into, part);
  }

 private:
  const fast::AttentionLoops& attention_ = fast::attention_loops(fast::best_here());
  product::Products products_;
};

}  // namespace

product::Products choose_products(const ProductChoice& choice, std::vector<std::string>& notes) {
  product::Products products({.exact = choice.exact, .trials = choice.trials});
  if (choice.exact) products.check_own(choice.threads);
  if (choice.kernels == CpuKernels::fast) return products;
  const std::shared_ptr<product::Engine> library = open_onednn();
  if (!library && choice.kernels == CpuKernels::onednn)
    fail(Kind::usage, "device cpu:onednn: this build has no oneDNN (libdnnl-dev); use cpu");
  if (!library) return products;
  const bool everything = choice.kernels == CpuKernels::onednn;
  const auto use = [&](Type type) {
    const std::string refusal = products.use(type, library, choice.threads);
    if (refusal.empty()) return;
    const bool in_pieces = type == Type::bf16 && choice.kernels != CpuKernels::onednn;
    if (in_pieces) products.use_form_by_form(type, open_onednn_in_pieces(), choice.threads);
    notes.push_back(in_pieces
                        ? "exact mode: oneDNN multiplies bf16 in pieces of a fixed size on this processor, "
                          "where bits of larger products depend on how they are cut"
                        : refusal);
  };
  // In f32 our own product is as fast or faster; for bf16 the library has the instructions, where the
  // processor has them.
  if (everything) use(Type::f32);
  if (everything || fast::runs_here(InstructionSet::avx512_bf16)) use(Type::bf16);
  if (!choice.exact) products.use_for_groups(open_onednn_in_blocks());
  return products;
}

std::unique_ptr<Kernels> choose_kernels(const ProductChoice& choice, std::vector<std::string>& notes) {
  std::unique_ptr<ReferenceKernels> kernels;
  if (choice.kernels == CpuKernels::reference)
    kernels = std::make_unique<ReferenceKernels>();
  else
    kernels = std::make_unique<ProductKernels>(choose_products(choice, notes), choice.threads);
  kernels->count_in(choice.plain_calls);
  return kernels;
}

}  // namespace weft
