// Numbers as small integers with a scale a block, by hand and against plain loops in double.
#include <cmath>
#include <limits>

#include "tests/ops/fixture.h"
#include "weft/ops/blocks.h"

namespace weft {
namespace {

class Blocks : public Ops {
 protected:
  Tensor packed(const Tensor& x, const BlockCode& how) {
    const Tensor out = zeros({packed_bytes(x.elements(), how)}, Dtype::u8);
    ops::pack_blocks_into(out, x, how);
    return out;
  }
  std::vector<double> there_and_back(const Tensor& x, const BlockCode& how) {
    const Tensor out = zeros(x.shape(), x.dtype());
    ops::unpack_blocks_into(out, packed(x, how), how);
    return numbers(out);
  }
};

/// What a block may hold: most steps, 0 and -most among them, of its greatest magnitude.
std::vector<double> rounded(const std::vector<double>& x, const BlockCode& how) {
  std::vector<double> out;
  const auto block = std::size_t(how.block);
  for (std::size_t at = 0; at < x.size(); at += block) {
    const std::size_t end = std::min(at + block, x.size());
    double greatest = 0;
    for (std::size_t i = at; i < end; ++i) greatest = std::max(greatest, std::abs(x[i]));
    const double scale = greatest / how.most();
    for (std::size_t i = at; i < end; ++i)
      out.push_back(greatest > 0 ? std::nearbyint(x[i] / scale) * scale : 0);
  }
  return out;
}

// A scale of 1: two and a half is as far from two as from three.
TEST_F(Blocks, of_four_bits_hold_seven_steps_each_way_and_round_ties_to_even) {
  const BlockCode how{.bits = 4, .block = 10};
  const Tensor x = holding({9}, {7, -7, 2.5, 3.5, -2.5, 0.5, 0, -0.51, 1.49});
  EXPECT_EQ(numbers(packed(x, how)), (std::vector<double>{0, 0, 0x80, 0x3f, 0x97, 0x42, 0x0e, 0xf0, 0x01}));
  EXPECT_EQ(there_and_back(x, how), (std::vector<double>{7, -7, 2, 4, -2, 0, 0, -1, 1}));
}

TEST_F(Blocks, of_eight_bits_hold_127_steps_each_way) {
  const BlockCode how{.bits = 8, .block = 4};
  const Tensor x = holding({5}, {-127, 126.5, 1.5, -0.5, -254});
  EXPECT_EQ(numbers(packed(x, how)),
            (std::vector<double>{0, 0, 0x80, 0x3f, 0x81, 126, 2, 0, 0, 0, 0, 0x40, 0x81}));
  EXPECT_EQ(there_and_back(x, how), (std::vector<double>{-127, 126, 2, 0, -254}));
}

TEST_F(Blocks, are_as_long_as_is_said_but_for_the_last) {
  for (const int bits : {4, 8})
    for (const std::int64_t n : {0, 1, 2, 15, 16, 17, 63, 64, 65, 1001})
      for (const std::int64_t block : {2, 6, 16, 64, 2048}) {
        const BlockCode how{.bits = bits, .block = block};
        const Tensor x = random({n});
        EXPECT_EQ(difference(there_and_back(x, how), rounded(numbers(x), how), {1e-6, 1e-7}), "")
            << n << " in blocks of " << block;
        EXPECT_EQ(packed_bytes(n, how), (n + block - 1) / block * 4 + (n * bits + 7) / 8);
      }
}

TEST_F(Blocks, bring_back_what_they_hold_in_any_type) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16}) {
    const Tensor x = random({200}, dtype);
    const BlockCode how{.bits = 8, .block = 64};
    EXPECT_EQ(difference(there_and_back(x, how), rounded(numbers(x), how), {rounding(dtype), 1e-7}), "");
  }
}

TEST_F(Blocks, of_nothing_are_zeros_and_of_what_is_not_finite_nan) {
  const double infinite = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (const int bits : {4, 8}) {
    const BlockCode how{.bits = bits, .block = 2};
    const Tensor x = holding({9}, {0, -0.0, infinite, 1, 1, nan, 1e-39, 2e-39, 5});
    const std::vector<double> back = there_and_back(x, how);
    for (const std::size_t i : {0U, 1U, 6U, 7U}) EXPECT_EQ(back[i], 0) << i;
    for (const std::size_t i : {2U, 3U, 4U, 5U}) EXPECT_TRUE(std::isnan(back[i])) << i;
    EXPECT_NEAR(back[8], 5, 1e-6);
  }
}

TEST_F(Blocks, are_added_to_what_is_there_where_asked) {
  const BlockCode how{.bits = 4, .block = 4, .accumulate = true};
  const Tensor out = holding({5}, {10, 20, 30, 40, 50}), x = holding({5}, {7, -7, 3, 0, 7});
  ops::unpack_blocks_into(out, packed(x, how), how);
  EXPECT_EQ(numbers(out), (std::vector<double>{17, 13, 33, 40, 57}));
}

TEST_F(Blocks, say_what_they_are_not_made_of) {
  const Tensor x = zeros({6}), bytes = zeros({7}, Dtype::u8);
  EXPECT_EQ(refused([&] { ops::pack_blocks_into(bytes, x, {.bits = 2}); }),
            "pack blocks: codes of 2 bits are not of 8 or 4");
  EXPECT_EQ(refused([&] { ops::pack_blocks_into(bytes, x, {.block = 3}); }),
            "pack blocks: a block of 3 numbers is not of an even number of them");
  EXPECT_EQ(refused([&] { ops::unpack_blocks_into(x, bytes, {}); }),
            "unpack blocks: packed is [7], not [10]");
}

}  // namespace
}  // namespace weft
