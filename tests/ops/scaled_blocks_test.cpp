// Eight bits by blocks: scales from tables made by hand, and what is multiplied.
#include <cmath>

#include "tests/ops/fixture.h"
#include "weft/ops/scaled.h"
#include "weft/tensor/f8_blocks.h"
#include "weft/tensor/f8_rounding.h"

namespace weft {
namespace {

using enum F8Blocks;

class ScaledByBlocks : public Ops {
 public:
  /// A row of zeros but for these.
  Tensor row(std::int64_t width, const std::vector<std::pair<std::int64_t, double>>& there) {
    std::vector<double> values(std::size_t(width), 0.0);
    for (const auto& [at, value] : there) values[std::size_t(at)] = value;
    return holding({1, width}, values);
  }
  Quantized rounded(const Tensor& x, F8Blocks blocks, ops::Turned turned = ops::Turned::no,
                    Dtype dtype = Dtype::f8e4m3) {
    return ops::quantize_blocks(x, dtype, turned, blocks);
  }
};

/// What codes stand for, of x alone.
std::vector<double> stood_for(const Tensor& codes, const Tensor& inverses, F8Blocks blocks, const Shape& of) {
  const F8Grid grid{blocks, codes.dim(0), codes.dim(1)};
  const std::vector<double> all = numbers(codes), by = numbers(inverses);
  std::vector<double> out;
  for (std::int64_t i = 0; i < of[0]; ++i)
    for (std::int64_t j = 0; j < of[1]; ++j) {
      const double kept = by[std::size_t(grid.place(i, j))];
      out.push_back(all[std::size_t(i * grid.columns + j)] *
                    (blocks == lines_of_32 ? std::ldexp(1, int(kept) - 127) : kept));
    }
  return out;
}

// By Transformer Engine's formulas: 448 / amax without its mantissa; and amax / 448, rounded up to a power of
// two, whose exponent is kept.
TEST_F(ScaledByBlocks, have_the_scales_of_a_table_made_by_hand) {
  struct Line {
    double greatest;
    Dtype dtype;
    double inverse;
    int exponent;
  };
  const double tiny = 0x1p-149;
  for (const Line& l :
       {Line{448, Dtype::f8e4m3, 1, 127}, Line{449, Dtype::f8e4m3, 2, 128},
        Line{224, Dtype::f8e4m3, 0.5, 126}, Line{1, Dtype::f8e4m3, 0x1p-8, 119},
        Line{1.75, Dtype::f8e4m3, 0x1p-8, 119}, Line{1.76, Dtype::f8e4m3, 0x1p-7, 120},
        Line{57344, Dtype::f8e5m2, 1, 127}, Line{57345, Dtype::f8e5m2, 2, 128}, Line{0, Dtype::f8e4m3, 1, 0},
        Line{tiny, Dtype::f8e4m3, 0x1p-127, 0}, Line{3e38, Dtype::f8e4m3, 0x1p120, 247}}) {
    const Tensor x = row(32, {{3, -l.greatest}, {4, l.greatest / 4}});
    const Quantized wide = rounded(x, lines_of_128, ops::Turned::no, l.dtype),
                    narrow = rounded(x, lines_of_32, ops::Turned::no, l.dtype);
    EXPECT_EQ(numbers(wide.inverses)[0], l.inverse) << l.greatest;
    EXPECT_EQ(numbers(narrow.inverses)[0], l.exponent) << l.greatest;
  }
}

/// Sums that no other order of the numbers has.
struct Weighed {
  std::int64_t codes = 0, exponents = 0;
};

Weighed weighed(const Tensor& codes, const Tensor& inverses, F8Blocks blocks) {
  Weighed out;
  const auto* bytes = static_cast<const std::uint8_t*>(codes.address());
  for (std::int64_t i = 0; i < codes.elements(); ++i) out.codes += bytes[i] * (i % 97 + 1);
  const F8Grid grid{blocks, codes.dim(0), codes.dim(1)};
  const std::vector<double> kept = numbers(inverses);
  const std::int64_t high = blocks == squares_of_128 ? 128 : 1;
  std::int64_t n = 0;
  for (std::int64_t i = 0; i < grid.rows; i += high)
    for (std::int64_t j = 0; j < grid.columns; j += grid.line()) {
      const double here = kept[std::size_t(grid.place(i, j))];
      out.exponents += (blocks == lines_of_32 ? int(here) : 127 + std::ilogb(here)) * (n++ % 97 + 1);
    }
  return out;
}

// tests/oracle/f8_blocks.py prints these.
TEST_F(ScaledByBlocks, have_the_codes_and_scales_of_torch) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < 160 * 288; ++i)
    values.push_back(std::ldexp(double(i * 7919 % 2003 - 1001), int(i * 31 % 29) - 20));
  const Tensor x = holding({160, 288}, values);
  struct Line {
    Dtype dtype;
    F8Blocks blocks;
    Weighed lying, turned;
  };
  for (const Line& l : {Line{Dtype::f8e4m3, lines_of_128, {212661573, 3171210}, {212731755, 3804561}},
                        Line{Dtype::f8e4m3, squares_of_128, {206317758, 2877}, {206519077, 2877}},
                        Line{Dtype::f8e4m3, lines_of_32, {217446915, 9497905}, {217966232, 9495496}},
                        Line{Dtype::f8e5m2, lines_of_128, {281535011, 3008180}, {281539181, 3608904}},
                        Line{Dtype::f8e5m2, squares_of_128, {275306829, 2730}, {275497010, 2730}},
                        Line{Dtype::f8e5m2, lines_of_32, {286049387, 9008290}, {286534560, 9005881}}}) {
    const Quantized both = rounded(x, l.blocks, ops::Turned::both, l.dtype);
    const Weighed lying = weighed(both.codes, both.inverses, l.blocks),
                  turned = weighed(both.turned, both.turned_inverses, l.blocks);
    EXPECT_EQ(lying.codes, l.lying.codes) << int(l.blocks);
    EXPECT_EQ(lying.exponents, l.lying.exponents) << int(l.blocks);
    EXPECT_EQ(turned.codes, l.turned.codes) << int(l.blocks);
    EXPECT_EQ(turned.exponents, l.turned.exponents) << int(l.blocks);
  }
}

TEST_F(ScaledByBlocks, each_have_a_scale_of_their_own) {
  const Tensor x = row(300, {{0, 448}, {127, 1}, {128, 0.875}, {255, -0.5}, {256, 3500}});
  EXPECT_EQ(stood_for(rounded(x, lines_of_128).codes, rounded(x, lines_of_128).inverses, lines_of_128,
                      x.shape())[128],
            0.875);
  const std::vector<double> wide = numbers(rounded(x, lines_of_128).inverses);
  EXPECT_EQ((std::vector<double>{wide[0], wide[16], wide[32]}), (std::vector<double>{1, 0x1p-9, 8}));
  const Tensor square = rounded(x, squares_of_128).inverses;
  EXPECT_EQ(numbers(square), (std::vector<double>{1, 0x1p-9, 8, 1}));
  const Tensor narrow = rounded(x, lines_of_32).inverses;
  EXPECT_EQ(narrow.elements(), 3 * 512);
  const std::vector<double> exponents = numbers(narrow);
  EXPECT_EQ(exponents[0], 127);
  EXPECT_EQ(exponents[1], 0);
  EXPECT_EQ(exponents[3], 119);
  EXPECT_EQ(exponents[512], 118);
  EXPECT_EQ(exponents[1024], 130);
}

// Of what is turned lines are columns; a square is the same one. Powers of two change nothing but what is too
// small for its block.
TEST_F(ScaledByBlocks, lie_along_the_rows_of_what_is_written) {
  const Tensor x = random({200, 150}, Dtype::f32, 100);
  for (std::size_t i = 0; i < 200 * 150; ++i) x.as<float>()[i] *= i % 7 == 0 ? 1.0F : 1e-6F;
  for (const F8Blocks blocks : {lines_of_128, squares_of_128, lines_of_32}) {
    const Quantized both = rounded(x, blocks, ops::Turned::both),
                    other = rounded(x.permute({1, 0}), blocks, ops::Turned::no);
    EXPECT_EQ(numbers(both.turned), numbers(other.codes));
    EXPECT_EQ(numbers(both.turned_inverses), numbers(other.inverses));
    const std::vector<double> lying = stood_for(both.codes, both.inverses, blocks, {200, 150}),
                              turned = stood_for(both.turned, both.turned_inverses, blocks, {150, 200}),
                              exact = numbers(x);
    bool same = true;
    for (std::size_t i = 0; i < 200; ++i)
      for (std::size_t j = 0; j < 150; ++j) {
        EXPECT_NEAR(lying[i * 150 + j], exact[i * 150 + j], std::abs(exact[i * 150 + j]) / 16 + 1e-3);
        same = same && lying[i * 150 + j] == turned[j * 200 + i];
      }
    EXPECT_EQ(same, blocks == squares_of_128);
  }
}

TEST_F(ScaledByBlocks, keep_what_is_not_finite_to_itself) {
  for (const F8Blocks blocks : {lines_of_128, squares_of_128, lines_of_32}) {
    const Tensor x = row(200, {{0, 448}, {1, INFINITY}, {2, std::nan("")}, {3, -INFINITY}, {150, 7}});
    const Quantized of = rounded(x, blocks);
    const std::vector<double> found = stood_for(of.codes, of.inverses, blocks, x.shape());
    for (const std::size_t bad : {1U, 2U, 3U}) EXPECT_TRUE(std::isnan(found[bad]));
    EXPECT_EQ(found[0], 448);
    EXPECT_EQ(found[150], 7);
  }
}

TEST_F(ScaledByBlocks, are_multiplied_by_what_they_stand_for) {
  const std::int64_t m = 5, n = 140, k = 300;
  const Tensor x = random({m, k}, Dtype::f32, 30), w = random({n, k});
  for (const auto& [a, b] : {std::pair{lines_of_128, squares_of_128}, std::pair{lines_of_32, lines_of_32}}) {
    const Quantized left = rounded(x, a, ops::Turned::no, Dtype::f8e5m2), right = rounded(w, b);
    const Tensor out = zeros({m, n});
    ops::scaled_matmul_into(
        out, left.codes, right.codes,
        {.a_inverse = left.inverses, .b_inverse = right.inverses, .a_blocks = a, .b_blocks = b});
    const std::vector<double> of_a = stood_for(left.codes, left.inverses, a, {m, k}),
                              of_b = stood_for(right.codes, right.inverses, b, {n, k}), found = numbers(out);
    for (std::size_t i = 0; i < std::size_t(m); ++i)
      for (std::size_t j = 0; j < std::size_t(n); ++j) {
        double sum = 0;
        for (std::size_t d = 0; d < std::size_t(k); ++d)
          sum += of_a[i * std::size_t(k) + d] * of_b[j * std::size_t(k) + d];
        EXPECT_NEAR(found[i * std::size_t(n) + j], sum, 1e-3);
      }
  }
}

TEST_F(ScaledByBlocks, are_refused_where_they_do_not_go_together) {
  const Tensor x = random({16, 32}), out = zeros({16, 16});
  EXPECT_EQ(refused([&] { (void)rounded(x, F8Blocks::whole); }),
            "quantize_blocks: a whole matrix is no block: ask quantize()");
  const auto said = [&](F8Blocks a, F8Blocks b) {
    const Quantized left = rounded(x, a), right = rounded(x, b);
    return refused([&] {
      ops::scaled_matmul_into(
          out, left.codes, right.codes,
          {.a_inverse = left.inverses, .b_inverse = right.inverses, .a_blocks = a, .b_blocks = b});
    });
  };
  EXPECT_EQ(said(squares_of_128, squares_of_128),
            "scaled_matmul: a and b both have a scale for each square, and no library multiplies these");
  EXPECT_EQ(said(lines_of_128, lines_of_32),
            "scaled_matmul: a and b do not have scales of blocks that go together");
}

}  // namespace
}  // namespace weft
