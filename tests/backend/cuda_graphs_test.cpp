// What a device with graphs is asked for, done as if it had none: in fewer calls where it came before.
#include <gtest/gtest.h>
#include <runtime.h>

#include <functional>
#include <thread>

#include "tests/support/gpu/emulated.h"
#include "tests/support/refused.h"
#include "weft/backend/cuda/device.h"
#include "weft/base/format.h"
#include "weft/tensor/host.h"

namespace weft {
namespace {

using Numbers = std::vector<float>;

/// Calls that the runtime gets while act runs.
std::int64_t calls_of(const std::function<void()>& act) {
  const std::uint64_t before = emulated::meter().asked;
  act();
  return std::int64_t(emulated::meter().asked - before);
}

class GpuGraphs : public ::testing::TestWithParam<unsigned> {
 protected:
  GpuGraphs() { emulated::set_pace(GetParam()); }
  ~GpuGraphs() override { EXPECT_EQ(join(emulated::take_reports(), "; "), ""); }

  Kernels& kernels() { return device_.kernels(); }
  const cuda::GraphCounts counts() { return device_.queue().counts(); }
  /// x doubled so many times, and then as the last factor says: one list of orders.
  void doubled(const Tensor& x, int times, float last = 2) {
    for (int i = 0; i + 1 < times; ++i) kernels().scale(x, 2);
    kernels().scale(x, last);
    device_.synchronize();
  }

  CudaDevice device_{{.graphs = true}};
};

INSTANTIATE_TEST_SUITE_P(Orders, GpuGraphs, ::testing::Values(0U, 1U, 5U, 6U));

TEST_P(GpuGraphs, ask_once_for_what_came_before) {
  const Tensor x = from_host<float>(device_, {2, 300}, Numbers(600, 1));
  EXPECT_EQ(calls_of([&] { doubled(x, 20); }), 20);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(calls_of([&] { doubled(x, 20); }), 1);
  EXPECT_EQ(to_host<float>(x), Numbers(600, 0x1p80F));
  EXPECT_EQ(counts().launched, 3);
  EXPECT_EQ(counts().set_anew, 0);
}

TEST_P(GpuGraphs, set_anew_what_differs) {
  const Tensor x = from_host<float>(device_, {600}, Numbers(600, 1));
  doubled(x, 20);
  doubled(x, 20, 0x1p-19F);
  EXPECT_EQ(calls_of([&] { doubled(x, 20, 0.5F); }), 2);
  EXPECT_EQ(to_host<float>(x), Numbers(600, 0x1p38F));
}

// The grid is another, and so are blocks that a larger one has behind the smaller one's.
TEST_P(GpuGraphs, take_another_shape) {
  const Tensor few = from_host<float>(device_, {100}, Numbers(100, 1)),
               many = from_host<float>(device_, {9000}, Numbers(9000, 1));
  for (const Tensor* x : {&few, &few, &many, &few, &many}) {
    kernels().scale(*x, 2);
    doubled(many, 20, 0x1p-19F);
  }
  EXPECT_EQ(to_host<float>(few), Numbers(100, 8));
  EXPECT_EQ(to_host<float>(many), Numbers(9000, 4));
}

// Libraries' calls, zeros and copies: caught, and set anew with other addresses and another way to add.
TEST_P(GpuGraphs, hold_calls_of_libraries) {
  const Tensor a = from_host<float>(device_, {2, 3}, Numbers{1, 2, 3, 4, 5, 6}),
               b = from_host<float>(device_, {3, 2}, Numbers{1, 0, 0, 1, 1, 1}),
               first = from_host<float>(device_, {2, 2}, Numbers(4, 100)),
               second = from_host<float>(device_, {2, 2}, Numbers(4, 1000)),
               copy = from_host<float>(device_, {2, 2}, Numbers(4)),
               sum = from_host<float>(device_, {2, 2}, Numbers(4));
  const auto act = [&](const Tensor& out, bool accumulate) {
    for (int i = 0; i < 10; ++i) kernels().scale(out, 1);
    kernels().matmul(out, a, b, {.accumulate = accumulate});
    kernels().copy(copy, out);
    kernels().fill(sum, 0);
    kernels().add(sum, sum, out);
    kernels().fill(out, 7);
    device_.synchronize();
    EXPECT_EQ(to_host<float>(copy), to_host<float>(sum));
    return to_host<float>(sum);
  };
  EXPECT_EQ(act(first, true), (Numbers{104, 105, 110, 111}));
  EXPECT_EQ(act(first, true), (Numbers{11, 12, 17, 18}));
  EXPECT_EQ(act(second, true), (Numbers{1004, 1005, 1010, 1011}));
  EXPECT_EQ(act(first, false), (Numbers{4, 5, 10, 11}));
  EXPECT_EQ(to_host<float>(first), Numbers(4, 7));
}

TEST_P(GpuGraphs, keep_the_turn_of_copies) {
  const Tensor x = from_host<float>(device_, {600}, Numbers(600, 1));
  const Numbers fives(600, 5);
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 10; ++k) kernels().scale(x, 2);
    device_.copy_from_host(*x.storage(), 0, fives.data(), 2400).wait();
    for (int k = 0; k < 10; ++k) kernels().scale(x, 2);
    EXPECT_EQ(to_host<float>(x), Numbers(600, 5120));
  }
}

// Blocks that were given back and are lent again, at other places each time.
TEST_P(GpuGraphs, know_blocks_that_come_and_go) {
  const Tensor x = from_host<float>(device_, {600}, Numbers(600, 1));
  for (int i = 0; i < 6; ++i) {
    const Tensor moves = empty(device_, {64 + 500 * i}, Dtype::f32, Use::workspace);
    for (int k = 0; k < 20; ++k) {
      const Tensor y = empty(device_, {600}, Dtype::f32, Use::activations);
      kernels().add(y, x, x);
      kernels().copy(x, y);
    }
    kernels().scale(x, 0x1p-20F);
    device_.synchronize();
  }
  EXPECT_EQ(to_host<float>(x), Numbers(600, 1));
}

TEST_P(GpuGraphs, go_one_by_one_where_nothing_comes_again) {
  const Tensor x = from_host<float>(device_, {4096}, Numbers(4096, 1));
  for (int i = 0; i < 40; ++i) {
    for (int k = 0; k < 20; ++k) kernels().scale(x.slice(0, 8 * i, 8), 2);
    device_.synchronize();
  }
  EXPECT_EQ(counts().launched, 32);
  EXPECT_EQ(counts().orders, 32 * 20);
  EXPECT_EQ(to_host<float>(x.slice(0, 0, 320)), Numbers(320, 0x1p20F));
}

TEST_P(GpuGraphs, begin_anew_when_they_are_forgotten) {
  const Tensor x = from_host<float>(device_, {600}, Numbers(600, 1));
  for (int i = 0; i < 3; ++i) doubled(x, 20);
  device_.queue().forget_graphs();
  EXPECT_EQ(calls_of([&] { doubled(x, 20); }), 20);
  EXPECT_EQ(to_host<float>(x), Numbers(600, 0x1p80F));
}

// As late as the end of the list, in the words of a launch that goes at once; what follows is not hurt.
TEST_P(GpuGraphs, say_what_the_gpu_refuses) {
  const Tensor x = from_host<float>(device_, {3, 600}, Numbers(1800, 1)),
               sums = from_host<float>(device_, {600}, Numbers(600)),
               others = from_host<float>(device_, {600}, Numbers(600));
  const auto list = [&](int scales, float first, const Tensor& to) {
    for (int k = 0; k < scales; ++k) kernels().scale(x, k == 0 ? first : 1);
    kernels().sum_rows(to, x);
    device_.synchronize();
  };
  for (int i = 0; i < 3; ++i) list(20, 1, sums);
  emulated::set_cards({.shared = 8});
  // For the first time, as a graph, and set anew halfway in one; nothing of those is done.
  for (const int scales : {30, 30, 20})
    EXPECT_TRUE(refused([&] {
                  list(scales, scales == 20 ? 3 : 1, others);
                }).starts_with("cuda: the GPU refuses a launch of "));
  emulated::set_cards({});
  for (int i = 0; i < 3; ++i) list(20, 1, sums);
  EXPECT_EQ(to_host<float>(sums), Numbers(600, 18));
}

/// A call that fails while it is told to, with something asked already.
struct Wilful {
  const bool* fails;
  void* at;
  void operator()(cudaStream_t stream) const {
    cudaMemsetAsync(at, 0, sizeof(float), stream);
    if (*fails) fail(Kind::device, "not now");
  }
};

TEST_P(GpuGraphs, catch_the_next_call_where_one_failed) {
  const Tensor x = from_host<float>(device_, {600}, Numbers(600, 1));
  bool fails = false;
  const int kind = 0;
  const auto list = [&] {
    for (int i = 0; i < 10; ++i) kernels().scale(x, 2);
    device_.queue().call(&kind, Wilful{&fails, x.storage()->data()});
    device_.synchronize();
  };
  list();
  fails = true;
  EXPECT_EQ(refused(list), "not now");  // while it is caught: nothing of the list is done
  fails = false;
  for (int i = 0; i < 2; ++i) list();
  Numbers expected(600, 0x1p30F);
  expected[0] = 0;
  EXPECT_EQ(to_host<float>(x), expected);
}

TEST_P(GpuGraphs, hear_of_blocks_from_any_thread) {
  const Tensor x = from_host<float>(device_, {600}, Numbers(600, 1));
  std::vector<Tensor> blocks;
  for (int i = 0; i < 500; ++i) blocks.push_back(empty(device_, {16}, Dtype::f32, Use::workspace));
  std::thread other([&] { blocks.clear(); });
  for (int i = 0; i < 500; ++i) kernels().scale(x, i % 2 == 0 ? 2 : 0.5F);
  other.join();
  EXPECT_EQ(to_host<float>(x), Numbers(600, 1));
}

}  // namespace
}  // namespace weft
