// The counting device against the one that holds numbers: the same ops leave the same meters, to the byte.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <functional>

#include "tests/support/made.h"
#include "weft/backend/cpu/device.h"
#include "weft/backend/meta/device.h"
#include "weft/ops/activation.h"
#include "weft/ops/attention.h"
#include "weft/ops/delta.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/matmul.h"
#include "weft/ops/norm.h"
#include "weft/ops/softmax.h"
#include "weft/tensor/host.h"

namespace weft {
namespace {

/// One step of a random program; the same on every device.
using CountedStep = std::function<void(std::vector<Tensor>&)>;

Tensor& pick(std::vector<Tensor>& held, std::size_t i) { return held[i % held.size()]; }
Device& device_of(const std::vector<Tensor>& held) { return held.front().device(); }

CountedStep product_step(std::size_t i, std::int64_t n, bool turned) {
  return [=](std::vector<Tensor>& held) {
    const Tensor a = pick(held, i);
    const std::int64_t k = a.dim(-1);
    Tensor w = ops::zeros(device_of(held), turned ? Shape{n, k} : Shape{k, n}, a.dtype(), Use::weights);
    const Read read = turned ? Read::transposed : Read::as_is;
    held.push_back(ops::matmul(a, w, {.b = read}));
    const Tensor dw = ops::zeros(device_of(held), {k, n}, Dtype::f32, Use::gradients);
    ops::matmul_into(dw, a, held.back(), {.a = Read::transposed, .accumulate = true});
  };
}

CountedStep batched_step(std::size_t i) {
  return [=](std::vector<Tensor>& held) {
    const Tensor x = pick(held, i);
    const Tensor batch = ops::zeros(device_of(held), {3, x.dim(0), x.dim(1)}, x.dtype());
    held.push_back(ops::matmul(batch, batch, {.b = Read::transposed}).at(0, 1));
  };
}

CountedStep grouped_step(std::size_t i, std::int64_t n) {
  return [=](std::vector<Tensor>& held) {
    const Tensor x = pick(held, i);
    const std::vector<std::int64_t> offsets = {0, x.dim(0) / 3, x.dim(0) / 3, x.dim(0)};
    const Tensor w = ops::zeros(device_of(held), {3, x.dim(1), n}, x.dtype(), Use::weights);
    held.push_back(ops::grouped_matmul(x, w, Groups{offsets}));
    const Tensor dw = ops::zeros(device_of(held), {3, x.dim(1), n}, Dtype::f32, Use::gradients);
    ops::grouped_matmul_into(dw, x, held.back(), Groups{offsets}, {.a = Read::transposed});
  };
}

CountedStep norm_step(std::size_t i) {
  return [=](std::vector<Tensor>& held) {
    const Tensor x = pick(held, i);
    Device& device = device_of(held);
    const NormWeights w{ops::zeros(device, {x.dim(1)}, x.dtype()), ops::zeros(device, {x.dim(1)}, x.dtype())};
    const NormWeights dw{ops::zeros(device, {x.dim(1)}), ops::zeros(device, {x.dim(1)})};
    const ops::NormOut out = ops::norm(x, w, {});
    held.push_back(testing::norm_backward(out.y, {}, {x, out.stats, w.gain}, dw, {}));
  };
}

CountedStep attention_step(std::int64_t s, std::int64_t d, Dtype dtype) {
  return [=](std::vector<Tensor>& held) {
    Device& device = device_of(held);
    const Attended in{ops::zeros(device, {s, 2, 2, 2, d}, dtype), ops::zeros(device, {s, 2, 2, d}, dtype),
                      ops::zeros(device, {s, 2, 2, d}, dtype)};
    const AttentionArgs how{.scale = 0.1F, .mask = Mask::causal};
    const AttentionOut out = ops::attention(in, how);
    const AttentionGrads grads = testing::attention_backward(out.o, out, in, how);
    held.push_back(grads.dq.view({s * 8, d}));
  };
}

/// By the delta rule with so many heads a group, or as a state space.
struct Remembers {
  std::int64_t heads;
  bool corrects;
};
CountedStep delta_step(std::int64_t s, std::int64_t d, Dtype dtype, Remembers as) {
  return [=](std::vector<Tensor>& held) {
    Device& device = device_of(held);
    const auto zeros = [&](const Shape& shape) { return ops::zeros(device, shape, dtype); };
    const auto weights = [&] { return ops::zeros(device, {2, as.heads}); };
    const Shape numbers{s, 2, 2, as.heads};
    const DeltaIn in{.q = zeros({s, 2, 2, d}),
                     .k = zeros({s, 2, 2, d}),
                     .v = zeros({s, 2, 2, as.heads, 20}),
                     .decay = zeros(numbers),
                     .rate = as.corrects ? zeros(numbers) : Tensor(),
                     .speed = weights(),
                     .shift = weights(),
                     .skip = as.corrects ? Tensor() : weights()};
    const DeltaGrads grads{.dq = zeros(in.q.shape()),
                           .dk = zeros(in.k.shape()),
                           .dv = zeros(in.v.shape()),
                           .ddecay = zeros(numbers),
                           .drate = as.corrects ? zeros(numbers) : Tensor(),
                           .dspeed = weights(),
                           .dshift = weights(),
                           .dskip = as.corrects ? Tensor() : weights()};
    held.push_back(ops::delta_rule(in).view({s * 4 * as.heads, 20}));
    ops::delta_rule_backward_into(grads, in.v, in);
  };
}

CountedStep elementwise_step(std::size_t i, int which) {
  return [=](std::vector<Tensor>& held) {
    const Tensor x = pick(held, i);
    if (which == 0) held.push_back(testing::add(x, x));
    if (which == 1) held.push_back(ops::activation(x, {}, Activation::gelu));
    if (which == 2) held.push_back(ops::softmax(x));
    if (which == 3 && held.size() > 1) held.erase(held.begin() + std::ptrdiff_t(i % held.size()));
    if (which == 4) held.push_back(ops::cast(x, Dtype::bf16));
  };
}

CountedStep any_step() {
  const std::size_t i = *rc::gen::inRange<std::size_t>(0, 100);
  const std::int64_t n = *rc::gen::inRange(1, 150);
  switch (*rc::gen::inRange(0, 9)) {
    case 0:
    case 1:
      return product_step(i, n, *rc::gen::arbitrary<bool>());
    case 2:
      return batched_step(i);
    case 3:
      return grouped_step(i, n);
    case 4:
      return norm_step(i);
    case 5:
      return attention_step(n, *rc::gen::element(16, 64), *rc::gen::element(Dtype::f32, Dtype::bf16));
    case 6:
      return delta_step(n, *rc::gen::element(16, 40), *rc::gen::element(Dtype::f32, Dtype::bf16),
                        {*rc::gen::element(3, 9), *rc::gen::arbitrary<bool>()});
    default:
      return elementwise_step(i, *rc::gen::inRange(0, 5));
  }
}

void run(Device& device, const std::vector<CountedStep>& program, Dtype dtype) {
  std::vector<Tensor> held = {ops::zeros(device, {70, 33}, dtype)};
  for (const CountedStep& step : program) step(held);
}

TEST(CountingDevice, leaves_the_meters_of_the_device_that_computes) {
  EXPECT_TRUE(rc::check([] {
    std::vector<CountedStep> program;
    for (int i = *rc::gen::inRange(1, 12); i > 0; --i) program.push_back(any_step());
    const Dtype dtype = *rc::gen::element(Dtype::f32, Dtype::bf16, Dtype::f16);
    const int threads = *rc::gen::element(1, 2, 3);
    CpuDevice real({.threads = threads});
    MetaDevice counted({.threads = threads});
    run(real, program, dtype);
    run(counted, program, dtype);
    RC_ASSERT(real.memory() == counted.memory());
    RC_ASSERT(real.reserved() == counted.reserved());
    for (std::size_t i = 0; i < works; ++i) RC_ASSERT(real.work().by[i] == counted.work().by[i]);
  }));
}

TEST(CountingDevice, holds_no_memory) {
  MetaDevice device;
  const Tensor huge = empty(device, {1 << 20, 1 << 20}, Dtype::f32, Use::weights);
  EXPECT_EQ(huge.storage()->data(), nullptr);
  EXPECT_EQ(device.memory().now[std::size_t(Use::weights)], std::int64_t(4) << 40);
}

TEST(CountingDevice, says_when_a_plan_does_not_fit) {
  MetaDevice device({.memory_limit = 1 << 20});
  try {
    empty(device, {1 << 20}, Dtype::f32, Use::weights);
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(
        e.what(),
        "meta: out of memory: 4.0 MiB for weights asked for, 0 B of the 1.0 MiB allowed held; lower "
        "{batch.micro}, or {eval.micro} if it was evaluating, recompute activations or cut the model over "
        "more ranks");
  }
}

}  // namespace
}  // namespace weft
