// The GPU as a device: which one there is, why there is none, and who may call it.
#include "weft/backend/cuda/device.h"

#include <gtest/gtest.h>
#include <runtime.h>

#include <thread>
#include <utility>

#include "tests/support/refused.h"
#include "weft/backend/open.h"
#include "weft/backend/timed.h"
#include "weft/tensor/host.h"

namespace weft {
namespace {

/// For one test, a machine with other GPUs.
struct Machine {
  explicit Machine(const emulated::Cards& cards) { emulated::set_cards(cards); }
  ~Machine() {
    emulated::set_cards({});
    cudaSetDevice(0);
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
};

TEST(CudaDevice, is_opened_by_name) {
  const Machine two({.count = 2});
  const auto device = open_device("cuda:1", {.memory_limit = 1 << 20});
  EXPECT_STREQ(device->name(), "cuda");
  EXPECT_EQ(emulated::device_of(device->allocate(64, Use::activations)->data()), 1);
}

// A thread that has chosen no GPU is on the first one: its launches and its memory would be there.
TEST(CudaDevice, is_the_same_one_for_every_thread) {
  const Machine two({.count = 2});
  CudaDevice device({.device = 1});
  std::thread([&] {
    const Tensor x = from_host<float>(device, {3}, std::vector<float>{1, 2, 3});
    device.kernels().scale(x, 2);
    EXPECT_EQ(to_host<float>(x), (std::vector<float>{2, 4, 6}));
    EXPECT_EQ(emulated::device_of(x.storage()->data()), 1);
  }).join();
}

TEST(CudaDevice, is_refused_where_there_is_no_such_gpu) {
  EXPECT_EQ(refused([] { open_device("cuda:1"); }), "device cuda:1: this machine has 1 of them");
}

TEST(CudaDevice, says_why_there_is_none) {
  const auto said = [](const emulated::Cards& cards) {
    const Machine machine(cards);
    return refused([] { open_device("cuda"); });
  };
  EXPECT_EQ(said({.count = 0, .driver = 0}),
            "device cuda: there is no driver of NVIDIA's on this machine; use cpu");
  EXPECT_EQ(said({.driver = 12020}),
            "device cuda: the driver knows CUDA 12.2, and this build is of an emulated GPU; use cpu");
  EXPECT_EQ(said({.count = 0}), "device cuda: the driver shows no GPU; use cpu");
}

TEST(CudaDevice, is_counted_without_being_opened) {
  const Machine two({.count = 2});
  const GpusHere here = gpus_here();
  EXPECT_EQ(here.built_with, "an emulated GPU");
  EXPECT_EQ(here.missing, "");
  ASSERT_EQ(here.all.size(), 2U);
  EXPECT_EQ(here.all[1].major, 8);
  EXPECT_EQ(here.all[1].units, 2);
  EXPECT_GT(free_on_gpu(1), 0);
}

// As many as a process opens one after another find room.
TEST(CudaDevice, gives_its_memory_back) {
  const auto where = [] {
    CudaDevice device;
    return device.allocate(64, Use::activations)->data();
  };
  const void* const first = where();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(where(), first);
}

// Nothing is done before somebody waits, so until then no instant is over; and the host has asked for all of
// it.
TEST(CudaDevice, knows_when_it_came_to_a_place) {
  emulated::set_pace(emulated::lazy);
  CudaDevice device;
  const Tensor x = from_host<float>(device, {1 << 14}, std::vector<float>(1 << 14, 1));
  const Instant before = device.instant();
  device.kernels().scale(x, 2);
  const Instant between = device.instant(), after = device.instant();
  device.synchronize();
  EXPECT_TRUE(before.over() && between.over() && after.over());
  EXPECT_GT(between.since(before), 0);
  EXPECT_GE(after.since(between), 0);
  EXPECT_LT(after.since(between), between.since(before));
}

TEST(CudaDevice, is_outlived_by_its_instants) {
  Spent spent;
  {
    CudaDevice device;
    Instant before = device.instant();
    const Tensor x = from_host<float>(device, {3}, std::vector<float>{1, 2, 3});
    device.kernels().scale(x, 2);
    spent.add({std::move(before), device.instant()});
  }
  EXPECT_GT(spent.seconds(), 0);
}

TEST(CudaDevice, knows_what_each_kind_of_work_takes) {
  WorkTimes times;
  CudaDevice device({.times = &times});
  const auto matrix = [&] { return from_host<float>(device, {4, 4}, std::vector<float>(16, 1)); };
  const Tensor a = matrix(), b = matrix(), out = matrix();
  device.kernels().matmul(out, a, b, {});
  device.kernels().scale(out, 2);
  times.paused = true;
  device.kernels().softmax(out, out);
  device.synchronize();
  EXPECT_EQ(times.calls[std::size_t(Work::product)], 1);
  EXPECT_EQ(times.calls[std::size_t(Work::elementwise)], 1);
  EXPECT_EQ(times.calls[std::size_t(Work::attention)], 0);
  EXPECT_GT(times.spent[std::size_t(Work::product)].seconds(), 0);
  EXPECT_GT(times.spent[std::size_t(Work::elementwise)].seconds(), 0);
  EXPECT_EQ(times.total(), times.spent[std::size_t(Work::product)].seconds() +
                               times.spent[std::size_t(Work::elementwise)].seconds());
  times.forget();
  EXPECT_EQ(times.total(), 0);
}

// A launch that is refused never runs, so nobody would hear of it later.
TEST(CudaDevice, says_which_launch_a_gpu_refuses) {
  CudaDevice device;
  const Tensor x = from_host<float>(device, {3}, std::vector<float>{1, 2, 3});
  const Machine small({.shared = 0});
  const std::string said = refused([&] { device.kernels().softmax(x, x); });
  EXPECT_TRUE(said.starts_with("cuda: the GPU refuses a launch of 1 blocks of 32 threads with ")) << said;
  EXPECT_TRUE(said.ends_with(" bytes of shared memory: invalid argument")) << said;
}

}  // namespace
}  // namespace weft
