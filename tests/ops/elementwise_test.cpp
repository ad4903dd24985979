// Elementwise ops against formulas, over random shapes and views.
#include <rapidcheck.h>

#include <cmath>

#include "tests/ops/fixture.h"
#include "tests/support/made.h"
#include "weft/ops/elementwise.h"

namespace weft {
namespace {

using Elementwise = Ops;

TEST_F(Elementwise, adds_multiplies_and_scales_whatever_the_strides) {
  EXPECT_TRUE(rc::check([&](bool swap, bool gaps) {
    const auto m = *rc::gen::inRange<std::int64_t>(0, 6);
    const auto n = *rc::gen::inRange<std::int64_t>(0, 6);
    const Tensor wide = random({m, n + 2});
    const Tensor a = gaps ? wide.slice(1, 1, n) : random({m, n});
    const Tensor b = swap ? random({n, m}).permute({1, 0}) : random({m, n});
    const std::vector<double> x = numbers(a);
    const std::vector<double> y = numbers(b);
    std::vector<double> sum(x.size()), product(x.size()), scaled(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      sum[i] = x[i] + y[i];
      product[i] = x[i] * y[i];
      scaled[i] = -2 * (x[i] + 0.5 * y[i]);
    }
    RC_ASSERT(difference(numbers(testing::add(a, b)), sum, f32_near) == "");
    RC_ASSERT(difference(numbers(ops::multiply(a, b)), product, f32_near) == "");
    ops::add_scaled_into(a, b, 0.5F);
    ops::scale_in_place(a, -2);
    RC_ASSERT(difference(numbers(a), scaled, f32_near) == "");
  }));
}

TEST_F(Elementwise, casts_and_rounds_to_even) {
  // 1 + 2^-8 lies between two bf16 numbers, 1 + 3 * 2^-8 between the next two.
  const Tensor x = holding({4}, {1 + 0x1p-8, 1 + 3 * 0x1p-8, -1 - 0x1p-8, 1 + 0x1p-8 + 0x1p-20});
  EXPECT_EQ(numbers(ops::cast(x, Dtype::bf16)), (std::vector<double>{1, 1 + 4 * 0x1p-8, -1, 1 + 0x1p-7}));
}

TEST_F(Elementwise, casts_to_integers_toward_zero_as_far_as_they_reach) {
  const Tensor x = holding({5}, {2.9, -2.9, 1e20, -1e20, std::nan("")});
  EXPECT_EQ(numbers(ops::cast(x, Dtype::i32)), (std::vector<double>{2, -2, 2147483647, -2147483648.0, 0}));
}

TEST_F(Elementwise, copies_integers_of_64_bits_whole) {
  const std::vector<std::int64_t> large{(std::int64_t{1} << 62) + 1, -5};
  const Tensor in = from_host<std::int64_t>(device(), {2}, large);
  const Tensor out = zeros({2}, Dtype::i64);
  ops::copy_into(out, in);
  EXPECT_EQ(to_host<std::int64_t>(out), large);
}

TEST_F(Elementwise, copies_only_where_it_must) {
  const Tensor x = random({3, 4});
  EXPECT_EQ(ops::cast(x, Dtype::f32).storage(), x.storage());
  EXPECT_EQ(ops::contiguous(x).storage(), x.storage());
  const Tensor turned = ops::contiguous(x.permute({1, 0}));
  EXPECT_TRUE(turned.contiguous());
  EXPECT_EQ(numbers(turned), numbers(x.permute({1, 0})));
}

TEST_F(Elementwise, adds_a_bias_to_every_row_and_sums_rows_back) {
  const Tensor x = random({2, 3, 4});
  const Tensor bias = random({4});
  const std::vector<double> before = numbers(x);
  const std::vector<double> more = numbers(bias);
  ops::add_bias_in_place(x, bias);
  std::vector<double> expected = before;
  std::vector<double> sums(4, 1);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] += more[i % 4];
    sums[i % 4] += before[i] + more[i % 4];
  }
  EXPECT_EQ(difference(numbers(x), expected, f32_near), "");
  const Tensor dbias = holding({4}, {1, 1, 1, 1});
  ops::sum_rows_into(dbias, x);
  EXPECT_EQ(difference(numbers(dbias), sums, f32_near), "");
}

DropoutArgs dropped(Ops&, const Tensor& samples, const Tensor& positions, std::int64_t width) {
  return {.probability = 0.25F,
          .at = {.seed = 9, .purpose = Purpose::dropout_hidden, .step = 2, .layer = 1},
          .samples = samples,
          .positions = positions,
          .width = width};
}

TEST_F(Elementwise, drops_by_address_and_keeps_the_mean) {
  const Tensor x = holding({32, 4, 64}, std::vector<double>(32 * 4 * 64, 1));
  const Tensor samples = holding({4}, {5, 6, 1000, 7}, Dtype::i64);
  std::vector<double> steps(32);
  for (std::size_t i = 0; i < 32; ++i) steps[i] = double(i);
  const DropoutArgs how = dropped(*this, samples, integers({32}, steps), 64);
  const std::vector<double> y = numbers(ops::dropout(x, how));
  double sum = 0;
  for (const double element : y) sum += element;
  EXPECT_NEAR(sum / double(y.size()), 1, 0.03);  // four deviations of 8192 draws
  Address at = how.at;
  at.sample = 1000;
  const bool kept = Draw(at).word(31 * 64 + 63) >= share(0.25);
  EXPECT_EQ(y[(31 * 4 + 2) * 64 + 63], kept ? double(float(1 / 0.75)) : 0);
}

TEST_F(Elementwise, drops_alike_however_the_tensor_is_cut) {
  const Tensor x = random({6, 3, 16});
  const Tensor samples = holding({3}, {3, 1, 4}, Dtype::i64);
  const Tensor positions = integers({6}, {0, 1, 2, 3, 4, 5});
  const Tensor whole = ops::dropout(x, dropped(*this, samples, positions, 16));
  DropoutArgs part = dropped(*this, samples.slice(0, 1, 2), positions.slice(0, 2, 3), 16);
  part.channel = 8;
  const auto cut = [](const Tensor& t) { return t.slice(0, 2, 3).slice(1, 1, 2).slice(2, 8, 8); };
  EXPECT_EQ(numbers(ops::dropout(cut(x), part)), numbers(cut(whole)));
}

TEST_F(Elementwise, adds_bias_drops_and_adds_the_residual_as_its_parts_do) {
  const Tensor x = random({5, 2, 8});
  const Tensor residual = random({5, 2, 8});
  const Tensor bias = random({8});
  const DropoutArgs how = dropped(*this, holding({2}, {0, 1}, Dtype::i64), integers({5}, {0, 1, 2, 3, 4}), 8);
  const Tensor fused = testing::bias_dropout_add(x, bias, residual, how);
  ops::add_bias_in_place(x, bias);
  EXPECT_EQ(difference(numbers(fused), numbers(testing::add(ops::dropout(x, how), residual)), f32_near), "");
}

TEST_F(Elementwise, says_what_does_not_fit) {
  const Tensor a = random({2, 3});
  EXPECT_EQ(refused([&] { (void)testing::add(a, random({3, 2})); }), "add: b is [3, 2], not [2, 3]");
  EXPECT_EQ(refused([&] {
              (void)ops::multiply(a, zeros({2, 3}, Dtype::i64));
            }),
            "multiply: b is i64, not f32, bf16 or f16");
  EXPECT_EQ(refused([&] { ops::copy_into(a, random({6})); }), "copy: in is [6], not [2, 3]");
  EXPECT_EQ(refused([&] { ops::add_bias_in_place(a, random({2})); }), "add_bias: bias is [2], not [3]");
  EXPECT_EQ(refused([&] { ops::sum_rows_into(zeros({3}, Dtype::bf16), a); }),
            "sum_rows: dbias is bf16, not f32");
  EXPECT_EQ(refused([&] { ops::add_scaled_into(a, {}); }), "add_scaled: x has no memory");
}

TEST_F(Elementwise, says_which_addresses_dropout_cannot_use) {
  const Tensor x = random({4, 2, 8});
  const Tensor samples = holding({2}, {0, 1}, Dtype::i64);
  const Tensor positions = integers({4}, {0, 1, 2, 3});
  DropoutArgs how = dropped(*this, samples, positions, 8);
  how.channel = 1;
  EXPECT_EQ(refused([&] { (void)ops::dropout(x, how); }), "dropout: channels 1 to 9 are not among 8");
  how = dropped(*this, {}, positions, 8);
  EXPECT_EQ(refused([&] { (void)ops::dropout(x, how); }), "dropout: samples has no memory");
  how = dropped(*this, samples, integers({3}, {0, 1, 2}), 8);
  EXPECT_EQ(refused([&] { (void)ops::dropout(x, how); }), "dropout: positions is [3], not [4]");
  how.probability = 1;
  EXPECT_EQ(refused([&] { (void)ops::dropout(x, how); }),
            "dropout: a dropout probability of 1 is not in [0, 1)");
  how.probability = std::nanf("");
  EXPECT_EQ(refused([&] { (void)ops::dropout(x, how); }),
            "dropout: a dropout probability of nan is not in [0, 1)");
  how.probability = 0.5F;
  EXPECT_EQ(refused([&] {
              (void)ops::dropout(random({4, 8}), how);
            }),
            "dropout: x [4, 8] has 2 dimensions, not 3");
}

}  // namespace
}  // namespace weft
