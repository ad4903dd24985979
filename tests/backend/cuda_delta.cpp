// Filters over a few steps, the gated delta rule and state spaces at shapes that take a GPU's kernels twice
// round every loop, in operands of many types; what they work in is counted, and what they do not take is
// refused.
#include <cmath>
#include <vector>

#include "tests/backend/conformance_delta.h"
#include "tests/support/refused.h"
#include "weft/backend/cuda/device.h"
#include "weft/backend/meta/device.h"

namespace weft::conformance {
namespace {

/// Stretches of walks, each way, in several warps and blocks.
void filter_in_stretches(Desk& desk, std::int64_t taps, bool biased) {
  const Shape shape{140, 2, 2, 264};
  const Tensor x = desk.normal(shape, Dtype::bf16), dy = desk.normal(shape, Dtype::f16);
  const Tensor y = desk.blank(shape, Dtype::bf16), dx = desk.blank(shape);
  const Filters filters{desk.normal({2, 264, taps}, Dtype::f32, 0.5),
                        biased ? desk.normal({2, 264}, Dtype::f16) : Tensor()};
  const ConvolveGrads grads{dx, desk.normal({2, 264, taps}), biased ? desk.normal({2, 264}) : Tensor()};
  desk.kernels().convolve(y, x, filters);
  desk.result("y", y, close(Dtype::bf16, taps, 4));
  desk.kernels().convolve_backward(grads, dy, x, filters);
  desk.result("dx", dx, close(Dtype::f32, taps, 4));
  desk.result("dweight", grads.dweight, close(Dtype::f32, 280 * taps, 8));
  if (biased) desk.result("dbias", grads.dbias, close(Dtype::f32, 280 * taps, 8));
}

/// Six taps are too long for registers.
TEST_P(Conformance, filters_in_stretches) {
  for (const std::int64_t taps : {4, 3, 6}) same([&](Desk& desk) { filter_in_stretches(desk, taps, false); });
}
TEST_P(Conformance, filters_in_stretches_with_a_bias) {
  for (const std::int64_t taps : {4, 6}) same([&](Desk& desk) { filter_in_stretches(desk, taps, true); });
}

struct Memories {
  std::int64_t steps, heads, d, d_value, batch = 2;
};

/// Of a few sequences, whose heads share keys.
DeltaIn operands(Desk& desk, const Memories& c) {
  DeltaIn in;
  const double size = 0.8 / std::sqrt(double(c.d));  // as long as keys are that were normed
  in.q = desk.normal({c.steps, c.batch, 1, c.d}, Dtype::bf16, size);
  in.k = desk.normal({c.steps, c.batch, 1, c.d}, Dtype::f16, size);
  in.v = desk.normal({c.steps, c.batch, 1, c.heads, c.d_value}, Dtype::bf16);
  in.decay = desk.normal({c.steps, c.batch, 1, c.heads}, Dtype::f32, 2);
  in.rate = desk.normal({c.steps, c.batch, 1, c.heads}, Dtype::f16, 2);
  in.speed = desk.normal({1, c.heads}, Dtype::f32, 2);
  in.shift = desk.normal({1, c.heads}, Dtype::f32, 1);
  in.scale = float(1 / std::sqrt(double(c.d)));
  return in;
}

void both_ways(Desk& desk, const DeltaIn& in) { remember(desk, in, {Dtype::f32, Dtype::f16, {2e-5, 2e-5}}); }

/// Three parts of values, the last one not full; four chunks and a rest, so states that are there and such
/// that are not.
TEST_P(Conformance, remembers_in_parts) {
  same([&](Desk& desk) { both_ways(desk, operands(desk, {70, 2, 40, 70})); });
}
TEST_P(Conformance, remembers_in_the_widest_heads) {
  same([&](Desk& desk) { both_ways(desk, operands(desk, {40, 1, 204, 40})); });
}
/// More steps of all sequences than a block of the last sums has threads.
TEST_P(Conformance, remembers_many_steps) {
  same([&](Desk& desk) { both_ways(desk, operands(desk, {150, 1, 8, 8})); });
}
DeltaIn state_space(Desk& desk, const Memories& c) {
  DeltaIn in = operands(desk, c);
  in.rate = {};
  in.skip = desk.normal({1, c.heads});
  return in;
}
/// As above.
TEST_P(Conformance, remembers_as_a_state_space_in_parts) {
  same([&](Desk& desk) { both_ways(desk, state_space(desk, {70, 2, 40, 70})); });
}
TEST_P(Conformance, remembers_as_a_state_space_in_the_widest_heads) {
  same([&](Desk& desk) { both_ways(desk, state_space(desk, {40, 1, 204, 40})); });
}
/// By tensor cores; results are f32, so that all that is lost on the way is seen.
void scan(Desk& desk, const Memories& c, double within = 2e-5) {
  DeltaIn in = state_space(desk, c);
  for (Tensor* const t : {&in.q, &in.k})
    *t = desk.normal(t->shape(), Dtype::bf16, 0.8 / std::sqrt(double(c.d)));
  remember(desk, in, {Dtype::f32, Dtype::bf16, {within, within}});
}
/// Several chunks and a rest, parts of values of which one is not full, channels that fill no tile, and more
/// heads than a block takes.
TEST_P(Conformance, scans_by_tiles) {
  for (const Memories& c : {Memories{150, 2, 128, 72}, Memories{70, 6, 40, 40}, Memories{3, 1, 8, 8}})
    same([&](Desk& desk) { scan(desk, c); });
}
TEST_P(Conformance, scans_by_tiles_in_segments) {
  same([&](Desk& desk) { scan(desk, {140, 1, 64, 32, 16}); });
}
/// A segment of several chunks behind another: what is given back is small beside slopes of hundreds of
/// steps.
TEST_P(Conformance, scans_by_tiles_for_long) {
  same([&](Desk& desk) { scan(desk, {600, 1, 8, 8}, 6e-5); });
}
/// Two groups, of which queries and keys lie beside each other, as a layer's first product leaves them.
TEST_P(Conformance, scans_by_tiles_in_groups) {
  same([&](Desk& desk) {
    const Tensor both = desk.normal({70, 2, 2, 144}, Dtype::bf16, 0.1);
    const Shape numbers{70, 2, 2, 3}, weights{2, 3};
    const DeltaIn in{.q = both.slice(3, 0, 72),
                     .k = both.slice(3, 72, 72),
                     .v = desk.normal({70, 2, 2, 3, 40}, Dtype::bf16),
                     .decay = desk.normal(numbers, Dtype::bf16, 2),
                     .speed = desk.normal(weights, Dtype::f32, 2),
                     .shift = desk.normal(weights),
                     .skip = desk.normal(weights),
                     .scale = 0.1F};
    remember(desk, in, {Dtype::f32, Dtype::bf16, {2e-5, 2e-5}});
  });
}
/// Every third step forgets everything, by an exponent of a thousand, and others next to nothing: what is
/// left between those is no difference of what is large.
TEST_P(Conformance, scans_what_is_forgotten_now_and_then) {
  same([&](Desk& desk) {
    DeltaIn in = state_space(desk, {150, 2, 40, 16});
    in.k = desk.normal(in.q.shape(), Dtype::bf16, 0.2);
    std::vector<double> decays;
    for (int i = 0; i < 150 * 2 * 2; ++i) decays.push_back(i / 4 % 3 == 1 ? 3 : -16 + i / 4 % 5);
    in.decay = desk.holding(in.decay.shape(), Dtype::f32, decays);
    in.speed = desk.holding({1, 2}, Dtype::f32, {6, -3});
    in.shift = desk.holding({1, 2}, Dtype::f32, {0, -3});
    remember(desk, in, {Dtype::f32, Dtype::bf16, {2e-5, 5e-5}});
  });
}
/// As what is published has them: results in bf16.
TEST_P(Conformance, scans_into_small_floats) {
  same([&](Desk& desk) {
    DeltaIn in = state_space(desk, {70, 2, 16, 16});
    in.k = desk.normal(in.q.shape(), Dtype::bf16, 0.2);
    const double step = rounding(Dtype::bf16);
    remember(desk, in, {Dtype::bf16, Dtype::bf16, {2 * step + 2e-5, step * 1e-2 + 2e-5}});
  });
}

/// Sequences that are so many that a segment has two stretches: two segments, and one of less than a chunk.
TEST_P(Conformance, remembers_in_segments) {
  const Memories c{140, 1, 13, 8, 16};
  same([&](Desk& desk) { both_ways(desk, operands(desk, c)); });
  same([&](Desk& desk) { both_ways(desk, state_space(desk, c)); });
}

/// e^-5000 a step, by a number whose power has no float, and a head beside it that keeps nearly all.
TEST_P(Conformance, forgets_at_once_both_ways) {
  same([&](Desk& desk) {
    DeltaIn in = operands(desk, {40, 2, 16, 16});
    in.speed = desk.holding({1, 2}, Dtype::f32, {4, -20});
    in.shift = desk.holding({1, 2}, Dtype::f32, {100, -3});
    both_ways(desk, in);
  });
}

enum class Which { delta, scanned };  // scanned: a state space in bf16

DeltaIn zeros(Device& device, const Memories& c, Which which) {
  const bool scanned = which == Which::scanned;
  const auto make = [&](const Shape& shape, Dtype dtype = Dtype::f32) {
    const Tensor out = empty(device, shape, dtype);
    device.kernels().fill(out, 0);
    return out;
  };
  const Dtype dtype = scanned ? Dtype::bf16 : Dtype::f32;
  return {.q = make({c.steps, c.batch, 1, c.d}, dtype),
          .k = make({c.steps, c.batch, 1, c.d}, dtype),
          .v = make({c.steps, c.batch, 1, c.heads, c.d_value}, dtype),
          .decay = make({c.steps, c.batch, 1, c.heads}),
          .rate = scanned ? Tensor() : make({c.steps, c.batch, 1, c.heads}),
          .speed = make({1, c.heads}),
          .shift = make({1, c.heads}),
          .skip = scanned ? make({1, c.heads}) : Tensor()};
}

void backward_of_zeros(Device& device, const Memories& c, Which which = Which::delta) {
  const DeltaIn in = zeros(device, c, which), out = zeros(device, c, which);
  const Tensor dout = out.v, dv = zeros(device, c, which).v;
  device.kernels().delta_rule_backward(
      {out.q, out.k, dv, out.decay, out.rate, out.speed, out.shift, out.skip}, dout, in);
}

TEST(RememberingOnTheGpu, takes_keys_of_256_channels_at_most) {
  CudaDevice gpu;
  const DeltaIn in = zeros(gpu, {3, 1, 257, 8}, Which::delta);
  const Tensor o = zeros(gpu, {3, 1, 257, 8}, Which::delta).v;
  EXPECT_EQ(refused([&] { gpu.kernels().delta_rule(o, in); }),
            "delta_rule: heads of 257 channels, and a GPU takes 256 at most");
  EXPECT_EQ(refused([&] {
              backward_of_zeros(gpu, {3, 1, 257, 8}, Which::delta);
            }),
            "delta_rule_backward: heads of 257 channels, and a GPU takes 256 at most");
}

/// The most that is worked in, of one that has numbers and of one that counts for it.
TEST(RememberingOnTheGpu, works_in_what_is_counted) {
  CudaDevice gpu;
  MetaDevice meta({.gpu = gpu_elsewhere});
  const auto worked_in = [](Device& device, const auto& act) {
    device.forget_peaks();
    act(device);
    return device.memory().peak[std::size_t(Use::workspace)];
  };
  for (const std::int64_t batch : {2, 16})  // of a segment, and of three
    for (const Which which : {Which::delta, Which::scanned}) {
      const auto act = [=](Device& device) { backward_of_zeros(device, {140, 1, 72, 8, batch}, which); };
      EXPECT_GT(worked_in(meta, act), 0);
      EXPECT_EQ(worked_in(meta, act), worked_in(gpu, act));
    }
  const auto filter = [](Device& device) {
    const Tensor x = zeros(device, {140, 1, 24, 8}, Which::delta).q,
                 dx = zeros(device, {140, 1, 24, 8}, Which::delta).q;
    const Tensor w = empty(device, {1, 24, 4}), dw = empty(device, {1, 24, 4}), bias = empty(device, {1, 24}),
                 dbias = empty(device, {1, 24});
    for (const Tensor& t : {w, dw, bias, dbias}) device.kernels().fill(t, 0);
    device.kernels().convolve_backward({dx, dw, dbias}, x, x, {w, bias});
  };
  EXPECT_GT(worked_in(meta, filter), 0);
  EXPECT_EQ(worked_in(meta, filter), worked_in(gpu, filter));
}

}  // namespace
}  // namespace weft::conformance
