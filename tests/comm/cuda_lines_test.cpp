// Every word of a line by the NCCL and on the GPU of this machine. NCCL refuses two ranks of one GPU, so the
// circle has a single end: that shows that the library is found, takes what it is called with and keeps its
// place in the device's order. What several ends say to each other is tested on the emulated GPU
// (gpu_lines_test.cpp).
#include <gtest/gtest.h>

#include "weft/backend/cuda/nccl_lines.h"
#include "weft/base/format.h"
#include "weft/tensor/host.h"

using namespace weft;

namespace {

class LineOfOne : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(lines_.missing(), "");
    line_ = lines_.open(lines_.fresh_name(), {.rank = 0, .size = 1});
  }
  /// What came is there for the device, and read from it.
  template <class T>
  std::vector<T> come(const Tensor& x) {
    line_->hold_device(line_->mark());
    return to_host<T>(x);
  }
  static std::byte* at(const Tensor& x) { return x.storage()->data(); }

  CudaDevice device_;
  cuda::NcclLines lines_{device_};
  std::unique_ptr<DeviceLine> line_;
  const std::vector<float> values_{1.5F, -2, 3, 0.25F};
  Tensor from_ = from_host(device_, {4}, values_), to_ = from_host(device_, {4}, std::vector<float>(4, 9));
  const DeviceLine::Reduced whole_{at(from_), at(to_), 4, Dtype::f32};
};

TEST_F(LineOfOne, reduces_alone) {
  line_->follow_device();
  line_->all_reduce(whole_);
  EXPECT_EQ(come<float>(to_), values_);
  device_.kernels().fill(to_, 9);
  line_->follow_device();
  line_->reduce_scatter(whole_);
  EXPECT_EQ(come<float>(to_), values_);
}

TEST_F(LineOfOne, gathers_and_broadcasts) {
  line_->follow_device();
  line_->all_gather(at(to_), at(from_), 16);
  line_->broadcast(at(to_), 16, 0);
  EXPECT_EQ(come<float>(to_), values_);
}

TEST_F(LineOfOne, exchanges_with_itself) {
  const DeviceLine::Piece out{at(from_), 16, 0}, in{at(to_), 16, 0};
  line_->follow_device();
  line_->exchange({&out, 1}, {&in, 1});
  EXPECT_EQ(come<float>(to_), values_);
}

TEST_F(LineOfOne, adds_parts_that_came) {
  const Tensor parts = from_host(device_, {4}, std::vector<bf16>{bf16(1), bf16(2), bf16(0.5F), bf16(4)});
  const Tensor sum = from_host(device_, {2}, std::vector<bf16>(2));
  line_->follow_device();
  line_->add_parts({at(parts), at(sum), 2, Dtype::bf16}, 2);
  EXPECT_EQ(float(come<bf16>(sum)[0]), 1.5F);
  EXPECT_EQ(float(come<bf16>(sum)[1]), 6.0F);
}

// A long word behind work of the device, and the device behind the word: nobody waits for the host.
TEST_F(LineOfOne, keeps_its_place_in_the_order) {
  const Tensor a = empty(device_, {1 << 24}), b = empty(device_, {1 << 24});
  for (int turn = 1; turn <= 8; ++turn) {
    device_.kernels().fill(a, float(turn));
    line_->follow_device();
    line_->all_gather(at(b), at(a), a.bytes());
    line_->hold_device(line_->mark());
    device_.kernels().fill(a, -1);
  }
  EXPECT_EQ(to_host<float>(b), std::vector<float>(1 << 24, 8));
}

}  // namespace
