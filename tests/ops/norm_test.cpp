// Norms against their definition, and their derivatives against differences.
#include <cmath>

#include "tests/ops/fixture.h"
#include "tests/support/made.h"
#include "weft/ops/elementwise.h"
#include "weft/ops/norm.h"

namespace weft {
namespace {

using Norm = Ops;

TEST_F(Norm, of_a_layer_has_mean_0_and_deviation_1) {
  const Tensor x = random({6, 40}, Dtype::f32, 5);
  const Tensor gain = holding({40}, std::vector<double>(40, 1));
  const std::vector<double> y = numbers(ops::norm(x, {gain, zeros({40})}, {.epsilon = 0}).y);
  for (std::size_t t = 0; t < 6; ++t) {
    double sum = 0;
    double squares = 0;
    for (std::size_t j = 0; j < 40; ++j) {
      sum += y[t * 40 + j];
      squares += y[t * 40 + j] * y[t * 40 + j];
    }
    EXPECT_NEAR(sum / 40, 0, 1e-6);
    EXPECT_NEAR(squares / 40, 1, 1e-6);
  }
}

TEST_F(Norm, of_root_mean_square_divides_by_it) {
  const Tensor x = holding({1, 2}, {3, 4});
  const ops::NormOut out = ops::norm(x, {holding({2}, {1, 2}), {}}, {.kind = NormKind::rms, .epsilon = 0.5F});
  const double rstd = 1 / std::sqrt(12.5 + 0.5);
  EXPECT_EQ(difference(numbers(out.y), std::vector<double>{3 * rstd, 8 * rstd}, f32_near), "");
  EXPECT_EQ(difference(numbers(out.stats.rstd), std::vector<double>{rstd}, f32_near), "");
  EXPECT_FALSE(out.stats.mean);
}

TEST_F(Norm, around_a_gain_stored_around_zero_is_the_same) {
  const Tensor x = random({3, 8});
  const Tensor gain = random({8});
  const Tensor one = holding({8}, std::vector<double>(8, 1));
  const Tensor bias = random({8});
  const Tensor y = ops::norm(x, {testing::add(gain, one), bias}, {}).y;
  EXPECT_EQ(difference(numbers(ops::norm(x, {gain, bias}, {.one_plus_gain = true}).y), numbers(y), f32_near),
            "");
}

struct Case {
  NormKind kind;
  bool one_plus, residual;
};
constexpr std::array cases{Case{NormKind::layer, false, false}, Case{NormKind::layer, true, true},
                           Case{NormKind::rms, false, true}, Case{NormKind::rms, true, false}};

TEST_F(Norm, has_the_derivatives_that_differences_show) {
  for (const Case& c : cases) {
    const bool layer = c.kind == NormKind::layer;
    const NormArgs how{.kind = c.kind, .epsilon = 1e-3F, .one_plus_gain = c.one_plus};
    const Tensor x = random({3, 7}, Dtype::f32, 2);
    const Tensor dy = random({3, 7});
    const NormWeights w{random({7}, Dtype::f32, 2), layer ? random({7}) : Tensor()};
    const NormWeights dw{zeros({7}), layer ? zeros({7}) : Tensor()};
    const Tensor residual = c.residual ? random({3, 7}) : Tensor();
    const ops::NormOut out = ops::norm(x, w, how);
    const Tensor dx = testing::norm_backward(dy, residual, {x, out.stats, w.gain}, dw, how);
    const auto f = [&] { return probed(dy, ops::norm(x, w, how).y) + (residual ? probed(residual, x) : 0); };
    EXPECT_EQ(difference(numbers(dx), slopes(x, f), slope_near), "");
    EXPECT_EQ(difference(numbers(dw.gain), slopes(w.gain, f), slope_near), "");
    if (layer) {
      EXPECT_EQ(difference(numbers(dw.bias), slopes(w.bias, f), slope_near), "");
    }
  }
}

TEST_F(Norm, adds_to_gradients_that_are_there) {
  const Tensor x = random({3, 4});
  const NormWeights w{random({4}), random({4})};
  const ops::NormOut out = ops::norm(x, w, {});
  const NormWeights once{zeros({4}), zeros({4})};
  const NormWeights twice{zeros({4}), zeros({4})};
  const NormSaved saved{x, out.stats, w.gain};
  (void)testing::norm_backward(x, {}, saved, once, {});
  (void)testing::norm_backward(x, {}, saved, twice, {});
  (void)testing::norm_backward(x, {}, saved, twice, {});
  ops::scale_in_place(once.gain, 2);
  EXPECT_EQ(difference(numbers(twice.gain), numbers(once.gain), f32_near), "");
}

TEST_F(Norm, of_a_sum_is_its_parts_one_after_the_other) {
  const SumNormIn in{random({4, 2, 6}), random({6}), random({4, 2, 6}), {}};
  const NormWeights w{random({6}), random({6})};
  const SumNormOut out = testing::sum_norm(in, w, {});
  const Tensor sum = testing::bias_dropout_add(in.x, in.bias, in.residual, {});
  EXPECT_EQ(numbers(out.sum), numbers(sum));
  EXPECT_EQ(numbers(out.y), numbers(ops::norm(sum, w, {}).y));
}

TEST_F(Norm, keeps_the_residual_stream_in_its_own_type) {
  const Tensor gain = random({6}, Dtype::bf16);
  const SumNormOut out = testing::sum_norm({random({4, 2, 6}, Dtype::bf16), {}, random({4, 2, 6}), {}},
                                           {gain, {}}, {.kind = NormKind::rms});
  EXPECT_EQ(out.sum.dtype(), Dtype::f32);
  EXPECT_EQ(out.y.dtype(), Dtype::bf16);
}

TEST_F(Norm, of_no_rows_is_no_rows) {
  const ops::NormOut out = ops::norm(random({0, 5}), {random({5}), random({5})}, {});
  EXPECT_EQ(out.y.shape(), (Shape{0, 5}));
}

TEST_F(Norm, scales_rows_and_gives_the_derivative_of_the_factor) {
  const Tensor x = random({2, 3, 4});
  const Tensor factor = random({2, 3});
  const Tensor dy = random({2, 3, 4});
  const auto f = [&] { return probed(dy, ops::scale_rows(x, factor)); };
  EXPECT_EQ(difference(numbers(ops::scale_rows(dy, factor)), slopes(x, f), slope_near), "");
  EXPECT_EQ(difference(numbers(ops::dot_rows(dy, x)), slopes(factor, f), slope_near), "");
}

TEST_F(Norm, without_a_bias_adds_nothing) {
  const Tensor x = random({3, 5}), gain = random({5});
  EXPECT_EQ(numbers(ops::norm(x, {gain, {}}, {}).y), numbers(ops::norm(x, {gain, zeros({5})}, {}).y));
}

TEST_F(Norm, says_what_does_not_fit) {
  const Tensor x = random({2, 4});
  const NormWeights w{random({4}), random({4})};
  const NormArgs rms{.kind = NormKind::rms};
  EXPECT_EQ(refused([&] {
              (void)ops::norm(random({2, 0}), w, {});
            }),
            "norm: x [2, 0] has rows of no elements");
  EXPECT_EQ(refused([&] { (void)ops::norm(x, {random({3}), w.bias}, {}); }), "norm: gain is [3], not [4]");
  EXPECT_EQ(refused([&] { (void)ops::norm(x, {w.gain, random({3})}, {}); }), "norm: bias is [3], not [4]");
  EXPECT_EQ(refused([&] { (void)ops::norm(x, w, rms); }), "norm: an RMS norm has no bias");
  const ops::NormOut out = ops::norm(x, w, {});
  EXPECT_EQ(refused([&] {
              (void)testing::norm_backward(x, {}, {x, out.stats, w.gain}, {}, rms);
            }),
            "norm_backward: an RMS norm has no mean");
  EXPECT_EQ(refused([&] {
              (void)testing::norm_backward(x, {}, {x, {{}, out.stats.rstd}, w.gain}, {{}, w.bias}, rms);
            }),
            "norm_backward: an RMS norm has no bias to give a gradient to");
  EXPECT_EQ(refused([&] {
              (void)testing::norm_backward(x, random({3, 4}), {x, out.stats, w.gain}, {}, {});
            }),
            "norm_backward: residual is [3, 4], not [2, 4]");
  EXPECT_EQ(
      refused([&] {
        ops::norm_backward_into({random({2, 4}), {}, {}, random({3, 4})}, x, {}, {x, out.stats, w.gain}, {});
      }),
      "norm_backward: rounded is [3, 4], not [2, 4]");
  EXPECT_EQ(refused([&] { (void)ops::scale_rows(x, random({3})); }), "scale_rows: factor is [3], not [2]");
  EXPECT_EQ(refused([&] { (void)ops::dot_rows(x, random({2, 3})); }), "dot_rows: b is [2, 3], not [2, 4]");
}

}  // namespace
}  // namespace weft
