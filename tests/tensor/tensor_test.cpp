#include "weft/tensor/tensor.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <numeric>

#include "tests/support/plain_device.h"
#include "tests/support/refused.h"
#include "weft/tensor/host.h"

using namespace weft;
using weft::testing::PlainDevice;

namespace {

Tensor counted(Device& device, const Shape& shape) {
  std::vector<float> values(std::size_t(shape.elements()));
  std::iota(values.begin(), values.end(), 0.F);
  return from_host(device, shape, values);
}

}  // namespace

TEST(Tensor, shares_memory_with_its_copies_and_gives_it_back) {
  PlainDevice device;
  {
    const Tensor a = empty(device, {4, 4}, Dtype::f32, Use::weights);
    const Tensor b = a;
    b.as<float>()[5] = 7;
    EXPECT_EQ(a.as<float>()[5], 7);
    EXPECT_EQ(device.memory().now[std::size_t(Use::weights)], 64);
  }
  EXPECT_EQ(device.memory().total, 0);
  EXPECT_EQ(device.memory().total_peak, 64);
}

TEST(Tensor, slices_and_permutes_without_moving_anything) {
  PlainDevice device;
  const Tensor x = counted(device, {2, 3, 4});
  EXPECT_EQ(to_host<float>(x.slice(1, 1, 2).at(0, 1)), (std::vector<float>{16, 17, 18, 19, 20, 21, 22, 23}));
  EXPECT_EQ(to_host<float>(x.at(0, 0).permute({1, 0})),
            (std::vector<float>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
  EXPECT_FALSE(x.slice(2, 0, 2).contiguous());
  EXPECT_TRUE(x.slice(0, 1, 1).contiguous());
}

TEST(Tensor, is_seen_in_other_shapes_where_its_steps_allow) {
  PlainDevice device;
  const Tensor x = counted(device, {4, 6});
  EXPECT_EQ(x.slice(1, 0, 4).split(1, {2, 2}).shape(), Shape({4, 2, 2}));
  const Tensor columns = x.slice(1, 2, 2);
  EXPECT_EQ(to_host<float>(columns.view({2, 2, 2})), to_host<float>(columns));
  EXPECT_EQ(refused([&] { (void)columns.view({8}); }),
            "view: [4, 2] with strides [6, 1] cannot be seen as [8]");
  EXPECT_EQ(x.view({2, 2, 6}).rows().shape(), Shape({4, 6}));
}

TEST(Tensor, says_what_was_asked_of_it_in_vain) {
  PlainDevice device;
  const Tensor x = counted(device, {2, 3});
  EXPECT_EQ(refused([&] { (void)x.as<std::int32_t>(); }), "tensor: [2, 3] holds f32, read as i32");
  EXPECT_EQ(refused([&] { (void)x.slice(1, 0, 2).as<float>(); }),
            "tensor: [2, 2] with strides [3, 1] has gaps and cannot be read as one run");
  EXPECT_EQ(refused([&] { (void)x.slice(1, 2, 2); }), "slice: [2, 3] has no elements 2 to 4 in dimension 1");
  EXPECT_EQ(refused([&] {
              (void)x.permute({0, 0});
            }),
            "permute: dimension 0 of [2, 3] is missing or named twice");
  EXPECT_EQ(refused([&] { (void)x.split(1, {2, 2}); }), "split: dimension 1 of [2, 3] is not [2, 2]");
  EXPECT_EQ(refused([] { (void)Tensor().address(); }), "tensor: read before it was given memory");
  EXPECT_EQ(refused([&] { (void)empty(device, {1L << 61}); }),
            "empty: [2305843009213693952] of f32 has more bytes than 63 bits can count");
  EXPECT_EQ(refused([&] { device.kernels().scale(x, 2); }), "scale is not implemented by the plain backend");
}

TEST(Tensor, any_view_of_any_shape_walks_the_same_elements) {
  PlainDevice device;
  EXPECT_TRUE(rc::check([&] {
    const auto a = *rc::gen::inRange(1, 5);
    const auto b = *rc::gen::inRange(1, 5);
    const auto c = *rc::gen::inRange(1, 5);
    const Tensor x = counted(device, {a, b, c + 1}).slice(2, 1, c);
    for (const Shape& shape : {Shape{a * b, c}, Shape{1, a, b, 1, c}, Shape{a, b * c}, Shape{a * b * c}}) {
      try {
        RC_ASSERT(to_host<float>(x.view(shape)) == to_host<float>(x));
      } catch (const Error& e) {
        RC_ASSERT(e.kind() == Kind::shape);
        RC_ASSERT(!x.contiguous());
      }
    }
  }));
}
