#include "weft/tensor/host.h"

#include <gtest/gtest.h>

#include "tests/support/plain_device.h"
#include "tests/support/refused.h"

using namespace weft;
using weft::testing::PlainDevice;

TEST(Host, reads_back_what_it_wrote_through_gaps) {
  PlainDevice device;
  const Tensor x = from_host(device, {2, 3}, std::vector<std::int32_t>{1, 2, 3, 4, 5, 6});
  copy_to(x.slice(1, 1, 1), std::span<const std::int32_t>(std::vector<std::int32_t>{8, 9}));
  EXPECT_EQ(to_host<std::int32_t>(x), (std::vector<std::int32_t>{1, 8, 3, 4, 9, 6}));
  EXPECT_EQ(numbers(x.at(1, 0)), (std::vector<double>{1, 4}));
}

TEST(Host, refuses_the_wrong_number_of_values) {
  PlainDevice device;
  const Tensor x = from_host(device, {2}, std::vector<float>{1, 2});
  EXPECT_EQ(refused([&] { (void)number(x); }), "number: a tensor of one element was expected, [2] was given");
  EXPECT_EQ(refused([&] { copy_to(x, std::span<const float>(std::vector<float>{1})); }),
            "copy_to: 1 values for [2]");
}
