// Fused attention against plain loops in double: shapes, masks, types, and every instruction set of this
// machine.
#include "weft/backend/cpu/fast/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "tests/backend/attention_example.h"
#include "tests/support/plain_device.h"
#include "weft/base/random.h"
#include "weft/tensor/kernels.h"

namespace weft {
namespace {

using testing::Answer;
using testing::distance;
using testing::Example;
using testing::Problem;
using testing::same;

std::unique_ptr<CpuDevice> device_of(int threads) {
  return std::make_unique<CpuDevice>(CpuOptions{.threads = threads, .kernels = CpuKernels::reference});
}
const fast::AttentionLoops& best() { return fast::attention_loops(fast::best_here()); }

/// f32 sums of some hundred products; 8 and 11 bits of result, and of the o that backward reads. A set that
/// multiplies bf16 also rounds p and ds to 8 bits: each term of a sum is then off by at most 2^-9 of itself,
/// less than the result's own rounding where terms do not cancel.
double tolerance(Dtype dtype) { return dtype == Dtype::f32 ? 4e-6 : dtype == Dtype::bf16 ? 2e-2 : 2e-3; }

void expect_close(const Answer& got, const Answer& expected, double within) {
  EXPECT_LE(distance(got.out.o, expected.out.o), within);
  EXPECT_LE(distance(got.out.lse, expected.out.lse), 2e-6);
  EXPECT_LE(distance(got.grads.dq, expected.grads.dq), within);
  EXPECT_LE(distance(got.grads.dk, expected.grads.dk), within);
  EXPECT_LE(distance(got.grads.dv, expected.grads.dv), within);
  if (expected.grads.dbias) {
    EXPECT_LE(distance(got.grads.dbias, expected.grads.dbias), within);
  }
}

void expect_right(const Problem& problem) {
  const auto device = device_of(2);
  const Example example = testing::make(*device, problem);
  const Answer expected = testing::oracle(*device, example);
  for (const fast::InstructionSet set : fast::all_here()) {
    SCOPED_TRACE(name(set));
    expect_close(testing::compute(fast::attention_loops(set), example), expected, tolerance(problem.dtype));
  }
}

constexpr Mask causal = Mask::causal;

TEST(FastAttention, equals_plain_loops_for_all_types) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16}) {
    SCOPED_TRACE(weft::name(dtype));
    expect_right({.sq = 130, .sk = 130, .b = 2, .g = 2, .d = 64, .dtype = dtype, .how = {.mask = causal}});
    expect_right({.sq = 50, .sk = 100, .b = 1, .g = 1, .r = 3, .d = 32, .dtype = dtype, .strided = true});
  }
}

TEST(FastAttention, equals_plain_loops_for_all_head_sizes) {
  for (const std::int64_t d : {1, 7, 16, 24, 40, 48, 80, 96, 112, 128, 160, 256}) {
    SCOPED_TRACE(d);
    expect_right({.sq = 70, .sk = 110, .d = d, .how = {.mask = causal, .diagonal = 40}});
  }
}

TEST(FastAttention, equals_plain_loops_for_all_lengths) {
  for (const std::int64_t sq : {1, 15, 16, 17, 48, 49, 193})
    for (const std::int64_t sk : {1, 8, 95, 97, 200}) {
      SCOPED_TRACE(std::to_string(sq) + " queries, " + std::to_string(sk) + " keys");
      expect_right({.sq = sq, .sk = sk, .d = 16});
    }
}

TEST(FastAttention, equals_plain_loops_for_grouped_and_shared_keys) {
  for (const std::int64_t r : {1, 2, 3, 5, 8}) {
    SCOPED_TRACE(r);
    expect_right({.sq = 100, .sk = 100, .b = 2, .g = 3, .r = r, .d = 16, .how = {.mask = causal}});
  }
}

TEST(FastAttention, sees_along_any_diagonal) {
  for (const std::int64_t diagonal : {-60, -1, 0, 1, 47, 48, 100, 1000}) {
    SCOPED_TRACE(diagonal);
    expect_right({.sq = 100, .sk = 150, .d = 16, .how = {.mask = causal, .diagonal = diagonal}});
  }
}

TEST(FastAttention, sees_a_sliding_window) {
  for (const std::int64_t window : {1, 5, 96, 130, 1000}) {
    SCOPED_TRACE(window);
    expect_right({.sq = 300, .sk = 300, .d = 16, .how = {.mask = causal, .window = window}});
    expect_right({.sq = 250, .sk = 300, .d = 16, .how = {.diagonal = 50, .window = window}});
  }
}

TEST(FastAttention, sees_documents_and_no_padding) {
  for (const std::int64_t documents : {1, 3, 40}) {
    SCOPED_TRACE(documents);
    expect_right({.sq = 200, .sk = 200, .b = 2, .d = 16, .how = {.mask = causal}, .documents = documents});
    expect_right({.sq = 90, .sk = 240, .b = 2, .r = 2, .d = 16, .documents = documents});
    expect_right({.sq = 200, .sk = 240, .b = 2, .d = 16, .documents = documents, .led_by = 100});
  }
}

TEST(FastAttention, adds_a_bias_and_finds_its_gradient) {
  expect_right({.sq = 120, .sk = 130, .b = 3, .g = 2, .r = 2, .d = 16, .biased = true});
  expect_right(
      {.sq = 60, .sk = 200, .b = 3, .d = 32, .how = {.mask = causal, .diagonal = 140}, .biased = true});
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16})
    expect_right({.sq = 400, .sk = 290, .b = 2, .d = 16, .dtype = dtype, .biased = true});
  expect_right({.sq = 210, .sk = 250, .r = 2, .d = 40, .biased = true});
  expect_right({.sq = 200, .sk = 240, .b = 2, .d = 16, .documents = 2, .led_by = 40, .biased = true});
}

TEST(FastAttention, drops_what_the_address_says) {
  AttentionArgs how = {.mask = causal, .dropout = 0.3F, .at = {.seed = 5, .step = 3, .layer = 2}};
  expect_right({.sq = 130, .sk = 130, .b = 2, .g = 2, .d = 16, .how = how});
  how.head0 = 11;
  how.query0 = 70001;
  how.key0 = 65538;  // not a multiple of the four keys that share a block of numbers
  how.dropout = 1e-9F;
  expect_right({.sq = 60, .sk = 110, .b = 1, .g = 2, .r = 2, .d = 16, .how = how});
  how.dropout = 0.9F;
  expect_right({.sq = 60, .sk = 110, .b = 1, .g = 2, .r = 2, .d = 16, .how = how, .biased = true});
}

TEST(FastAttention, equals_plain_loops_in_bf16_for_all_shapes_and_masks) {
  constexpr Dtype type = Dtype::bf16;
  for (const std::int64_t d : {1, 7, 16, 24, 33, 48, 80, 96, 128, 160, 256})
    expect_right({.sq = 70, .sk = 110, .d = d, .dtype = type, .how = {.mask = causal, .diagonal = 40}});
  for (const std::int64_t sq : {1, 16, 33, 49, 193})
    for (const std::int64_t sk : {1, 31, 33, 97, 200})
      expect_right({.sq = sq, .sk = sk, .d = 16, .dtype = type});
  for (const std::int64_t diagonal : {-60, -1, 47, 1000})
    expect_right(
        {.sq = 100, .sk = 150, .d = 16, .dtype = type, .how = {.mask = causal, .diagonal = diagonal}});
  for (const std::int64_t window : {1, 33, 130})
    expect_right({.sq = 250, .sk = 300, .d = 32, .dtype = type, .how = {.diagonal = 50, .window = window}});
}

TEST(FastAttention, equals_plain_loops_in_bf16_with_all_that_changes_scores) {
  constexpr Dtype type = Dtype::bf16;
  const AttentionArgs drops = {.mask = causal, .dropout = 0.3F, .at = {.seed = 5, .step = 3, .layer = 2}};
  expect_right({.sq = 130, .sk = 130, .b = 2, .g = 2, .d = 32, .dtype = type, .how = drops});
  expect_right({.sq = 60, .sk = 110, .r = 2, .d = 16, .dtype = type, .how = drops, .biased = true});
  expect_right({.sq = 90, .sk = 240, .b = 2, .r = 3, .d = 16, .dtype = type, .documents = 3});
  expect_right({.sq = 120, .sk = 130, .b = 3, .g = 2, .r = 2, .d = 16, .dtype = type, .biased = true});
  expect_right({.sq = 210, .sk = 250, .r = 2, .d = 40, .dtype = type});
}

TEST(FastAttention, equals_plain_loops_for_a_negative_scale_and_for_none) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16})
    for (const float scaled : {-2.0F, -0.0F, 0.0F}) {
      SCOPED_TRACE(std::string(weft::name(dtype)) + " " + std::to_string(scaled));
      expect_right({.sq = 130, .sk = 130, .dtype = dtype, .how = {.mask = causal}, .scaled = scaled});
      expect_right({.sq = 60, .sk = 110, .r = 2, .d = 16, .dtype = dtype, .biased = true, .scaled = scaled});
    }
}

/// o of a query whose first key has 1 / e of the second's weight, in f32.
double weighed(const fast::AttentionLoops& loops, float first, float second) {
  const auto device = device_of(1);
  const auto holding = [&](const Shape& shape, std::vector<float> all) {
    return from_host<bf16>(*device, shape, std::vector<bf16>(all.begin(), all.end()));
  };
  const Attended in = {holding({1, 1, 1, 1, 1}, {1}), holding({2, 1, 1, 1}, {-1, 0}),
                       holding({2, 1, 1, 1}, {first, second})};
  const AttentionOut out = {empty(*device, {1, 1, 1, 1, 1}), empty(*device, {1, 1, 1})};
  fast::attention(loops, out, in, {.scale = 1});
  return double(out.o.data<float>()[0]);
}

TEST(FastAttention, rounds_probabilities_and_drops_denormals_where_it_multiplies_bf16) {
  const double p = std::exp(-1.0), rounded = double(float(bf16(float(p))));
  constexpr float denormal = 0x1p-130F;
  for (const fast::InstructionSet set : fast::all_here()) {
    SCOPED_TRACE(name(set));
    const fast::AttentionLoops& loops = fast::attention_loops(set);
    const bool pairs = set >= fast::InstructionSet::avx512_bf16;
    EXPECT_NEAR(weighed(loops, 1, 0), (pairs ? rounded : p) / (1 + p), 1e-6);
    EXPECT_NEAR(weighed(loops, denormal, denormal), pairs ? 0 : denormal, 1e-3 * denormal);
  }
}

TEST(FastAttention, gives_zero_and_minus_infinity_to_a_query_that_sees_nothing) {
  const auto device = device_of(1);
  const Example example =
      testing::make(*device, {.sq = 60, .sk = 60, .d = 16, .how = {.mask = causal, .diagonal = -20}});
  const Answer got = testing::compute(best(), example);
  for (std::int64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(got.out.lse.data<float>()[i], -std::numeric_limits<float>::infinity());
    EXPECT_EQ(got.out.o.data<float>()[i * 16], 0);
    EXPECT_EQ(got.grads.dq.data<float>()[i * 16], 0);
  }
  for (std::int64_t key = 40; key < 60; ++key) EXPECT_EQ(got.grads.dv.data<float>()[key * 16], 0);
}

TEST(FastAttention, takes_no_keys_and_no_queries) {
  expect_right({.sq = 5, .sk = 0, .d = 16});
  expect_right({.sq = 0, .sk = 5, .d = 16});
  expect_right({.sq = 0, .sk = 5, .g = 2, .r = 3, .d = 16});
}

/// Many threads, and behind every block eight times as much memory that nobody may touch.
class GuardedDevice final : public Device {
 public:
  const char* name() const override { return "guarded"; }
  StorageRef allocate(std::int64_t bytes, Use use) override {
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(64, std::size_t(whole(bytes))));
    std::fill(memory + bytes, memory + whole(bytes), std::byte{0x5a});
    return StorageRef(new Storage(*this, memory, bytes, use));
  }
  void recycle(Storage& block) noexcept override {
    for (std::int64_t i = block.bytes(); i < whole(block.bytes()); ++i)
      touched_ += block.data()[i] != std::byte{0x5a};
    std::free(block.data());
    delete &block;
  }
  Kernels& kernels() override { return kernels_; }
  Fence copy_from_host(Storage& to, std::int64_t offset, const void* from, std::int64_t bytes) override {
    std::memcpy(to.data() + offset, from, std::size_t(bytes));
    return {};
  }
  Fence copy_to_host(void* to, const Storage& from, std::int64_t offset, std::int64_t bytes) override {
    std::memcpy(to, from.data() + offset, std::size_t(bytes));
    return {};
  }
  int threads() const override { return 8; }
  void forbid_fresh_memory(bool) override {}
  MemoryMeter memory() const override { return {}; }
  void forget_peaks() override {}
  std::int64_t touched() const { return touched_; }

 private:
  static std::int64_t whole(std::int64_t bytes) { return (8 * bytes + 128) / 64 * 64; }
  testing::PlainKernels kernels_;
  std::int64_t touched_ = 0;
};

TEST(FastAttention, stays_in_its_workspace_where_threads_outnumber_tasks) {
  GuardedDevice device;
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16})
    for (const std::int64_t d : {5, 40}) {
      const AttentionArgs how = {.mask = causal, .dropout = 0.1F};
      const Example example = testing::make(
          device, {.sq = 385, .sk = 200, .d = d, .dtype = dtype, .how = how, .biased = d == 40});
      for (int i = 0; i < 5; ++i) testing::compute(best(), example);
    }
  EXPECT_EQ(device.touched(), 0);
}

TEST(FastAttention, adds_to_gradients_where_asked) {
  const auto device = device_of(2);
  const Example example = testing::make(*device, {.sq = 100, .sk = 140, .g = 2, .r = 2, .d = 16});
  const Answer expected = testing::oracle(*device, example);
  Answer got = testing::compute(best(), example);
  got.grads.accumulate = true;
  fast::attention_backward(best(), got.grads, example.dout, got.out, example.in, example.how);
  expected.out.o.device().kernels().scale(expected.grads.dq, 2);
  expected.out.o.device().kernels().scale(expected.grads.dk, 2);
  expected.out.o.device().kernels().scale(expected.grads.dv, 2);
  expect_close(got, expected, tolerance(Dtype::f32));
}

TEST(FastAttention, keeps_a_number_that_is_none_in_its_own_row) {
  const auto device = device_of(1);
  const Example example = testing::make(*device, {.sq = 100, .sk = 100, .d = 16, .how = {.mask = causal}});
  example.in.q.data<float>()[70 * 16 + 3] = std::numeric_limits<float>::quiet_NaN();
  const Answer got = testing::compute(best(), example);
  for (std::int64_t i = 0; i < 100; ++i) EXPECT_EQ(std::isnan(got.out.o.data<float>()[i * 16]), i == 70) << i;
}

TEST(FastAttention, finds_what_finite_differences_find) {
  const auto device = device_of(1);
  const Problem problem = {
      .sq = 20, .sk = 30, .g = 1, .r = 2, .d = 8, .how = {.mask = causal, .diagonal = 10}};
  const Example example = testing::make(*device, problem);
  const Answer answer = testing::compute(best(), example);
  const auto loss = [&] {
    const Answer moved = testing::room_for(example, Dtype::f32);
    fast::attention(best(), moved.out, example.in, example.how);
    const std::vector<double> o = numbers(moved.out.o), dout = numbers(example.dout);
    double sum = 0;
    for (std::size_t i = 0; i < o.size(); ++i) sum += o[i] * dout[i];
    return sum;
  };
  const auto check = [&](const Tensor& x, const Tensor& dx, std::int64_t element) {
    float& at = x.data<float>()[element];
    const float before = at, step = 1.0F / 64;
    at = before + step;
    const double above = loss();
    at = before - step;
    const double below = loss();
    at = before;
    EXPECT_NEAR((above - below) / (2 * step), numbers(dx)[std::size_t(element)], 2e-3) << element;
  };
  for (const std::int64_t element : {0, 77, 150, 239}) {
    check(example.in.q, answer.grads.dq, element);
    check(example.in.k, answer.grads.dk, element);
    check(example.in.v, answer.grads.dv, element);
  }
}

TEST(FastAttention, merges_parts_into_the_whole) {
  const auto device = device_of(2);
  const Example whole = testing::make(*device, {.sq = 70, .sk = 150, .b = 2, .g = 2, .d = 24});
  const Answer expected = testing::oracle(*device, whole);
  const auto part = [&](std::int64_t from, std::int64_t count) {
    Example cut = whole;
    cut.in.k = whole.in.k.slice(0, from, count);
    cut.in.v = whole.in.v.slice(0, from, count);
    const Answer room = testing::room_for(cut, Dtype::f32);
    fast::attention(best(), room.out, cut.in, cut.how);
    return room.out;
  };
  const AttentionOut into = part(0, 40);
  fast::merge_attention(best(), into, part(40, 110));
  EXPECT_LE(distance(into.o, expected.out.o), 4e-6);
  EXPECT_LE(distance(into.lse, expected.out.lse), 2e-6);
}

TEST(FastAttention, raises_two_to_a_power_within_two_units_of_the_last_place) {
  for (const fast::InstructionSet set : fast::all_here()) {
    std::vector<float> x;
    for (int i = 0; i < 400000; ++i) x.push_back(-126 + 0.00063F * float(i));
    std::vector<float> y = x;
    fast::attention_loops(set).exp2(y.data(), std::int64_t(y.size()));
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = std::exp2(double(x[i]));
      worst = std::max(worst, std::abs(double(y[i]) - exact) / std::ldexp(1.0, std::ilogb(exact) - 23));
    }
    EXPECT_LE(worst, 2) << name(set);
  }
}

TEST(FastAttention, raises_two_to_what_is_no_number) {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> x = {-infinity, -1e30F, -127, 0, 1, std::numeric_limits<float>::quiet_NaN()};
  best().exp2(x.data(), std::int64_t(x.size()));
  EXPECT_EQ((std::vector<float>{x.begin(), x.end() - 1}), (std::vector<float>{0, 0, 0, 1, 2}));
  EXPECT_TRUE(std::isnan(x.back()));
}

}  // namespace
}  // namespace weft
