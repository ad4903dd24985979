// Eight bits by blocks: codes and scales must agree in every bit, products to the order of their sums.
#include <cmath>
#include <limits>

#include "tests/backend/conformance.h"
#include "tests/support/sanitized.h"
#include "weft/tensor/f8_blocks.h"

namespace weft::conformance {
namespace {

constexpr std::array<F8Blocks, 3> every_kind_of_blocks{F8Blocks::lines_of_128, F8Blocks::squares_of_128,
                                                       F8Blocks::lines_of_32};

struct RoundedBlocks {
  Tensor codes, inverses;
};

RoundedBlocks blank_blocks(Desk& desk, std::int64_t rows, std::int64_t columns, Dtype dtype,
                           F8Blocks blocks) {
  const std::int64_t unit = f8_unit_of(blocks);
  const F8Grid grid{blocks, f8_blocks_in(rows, unit) * unit, f8_blocks_in(columns, unit) * unit};
  const std::vector<double> nothing(std::size_t(grid.places()), 77);
  return {desk.blank({grid.rows, grid.columns}, dtype), desk.holding({grid.places()}, grid.dtype(), nothing)};
}

/// Codes of x as they lie, turned, and both.
void round_by_blocks(Desk& desk, const Tensor& x, Dtype dtype, F8Blocks blocks) {
  desk.lay(Lay::contiguous);
  const std::int64_t r = x.dim(0), c = x.dim(1);
  const RoundedBlocks lying = blank_blocks(desk, r, c, dtype, blocks),
                      turned = blank_blocks(desk, c, r, dtype, blocks),
                      alone = blank_blocks(desk, r, c, dtype, blocks),
                      turned_alone = blank_blocks(desk, c, r, dtype, blocks);
  desk.kernels().quantize_blocks({lying.codes, turned.codes, lying.inverses, turned.inverses}, x, blocks);
  desk.kernels().quantize_blocks({alone.codes, {}, alone.inverses}, x, blocks);
  desk.kernels().quantize_blocks({{}, turned_alone.codes, {}, turned_alone.inverses}, x, blocks);
  const auto hand_in = [&](const char* codes, const char* inverses, const RoundedBlocks& it) {
    desk.result(codes, it.codes, exactly);
    desk.result(inverses, it.inverses, exactly);
  };
  hand_in("codes", "inverses", lying);
  hand_in("turned", "turned inverses", turned);
  hand_in("codes alone", "inverses alone", alone);
  hand_in("turned alone", "turned inverses alone", turned_alone);
}

// Ends that are no whole block, and tiles in every direction.
TEST_P(Conformance, rounds_by_blocks_however_it_lies) {
  const std::vector<Shape> all{Shape{1, 1}, Shape{33, 150}, Shape{140, 70}};
  for (const Shape& shape : testing::some_of(all, 2))
    for (const Dtype dtype : floats)
      for (const F8Blocks blocks : every_kind_of_blocks)
        same_however_it_lies(
            [&](Desk& desk) { round_by_blocks(desk, desk.normal(shape, dtype, 40), Dtype::f8e4m3, blocks); });
  for (const F8Blocks blocks : every_kind_of_blocks)
    same([&](Desk& desk) {
      round_by_blocks(desk, desk.normal({270, 400}, Dtype::bf16, 40), Dtype::f8e5m2, blocks);
    });
}

// Blocks of zeros, of almost nothing, of what is too large and of what is not finite.
TEST_P(Conformance, rounds_by_blocks_what_is_extreme) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> greatest{0,     1e-45,    1e-40,     1e-38,     0x1p-126, 3e38,    -3.4e38,
                                     448,   57344,    0x1.cp-10, 1.75,      0x1.c2p3, 447.9,   1,
                                     1e-20, infinity, infinity,  -infinity, 0x1p-118, 0x1p-119};
  const auto rows = std::int64_t(greatest.size());
  std::vector<double> values;
  for (std::size_t i = 0; i < greatest.size(); ++i)
    for (int j = 0; j < 160; ++j) {
      const bool bad = i == 16 || i == 17;
      values.push_back(j == 40 ? greatest[i] : bad ? double(j) : greatest[i] * double(j % 9 - 4) / 5);
    }
  for (double& value : values)
    if (std::isinf(value) && &value != &values[15 * 160 + 40]) value = value > 0 ? infinity : std::nan("");
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16})
    for (const F8Blocks blocks : every_kind_of_blocks)
      for (const Dtype eight : {Dtype::f8e4m3, Dtype::f8e5m2})
        same([&](Desk& desk) {
          round_by_blocks(desk, desk.holding({rows, 160}, dtype, values), eight, blocks);
        });
}

struct BlockFactors {
  std::int64_t m, n, k;
};

/// What codes stand for has gaps of all sizes: a scale that is missed is seen.
RoundedBlocks rounded_blocks(Desk& desk, std::int64_t rows, std::int64_t k, Dtype dtype, F8Blocks blocks) {
  std::vector<double> values(std::size_t(rows * k));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t row = i / std::size_t(k), column = i % std::size_t(k);
    values[i] = (double(i * 7 % 31) - 15) * std::ldexp(1, int(row % 5) - int(column / 32 % 3) * 2);
  }
  const Tensor x = desk.holding({rows, k}, Dtype::f32, values);
  const RoundedBlocks out = blank_blocks(desk, rows, k, dtype, blocks);
  desk.kernels().quantize_blocks({out.codes, {}, out.inverses}, x, blocks);
  return out;
}

TEST_P(Conformance, multiplies_by_blocks) {
  using enum F8Blocks;
  const std::vector<BlockFactors> all{{33, 140, 270}, {1, 1, 1}, {16, 160, 32}};
  for (const BlockFactors& s : testing::some_of(all, 2))
    for (const Dtype dtype : floats)
      for (const auto& [a, b] : {std::pair{lines_of_128, squares_of_128},
                                 std::pair{lines_of_128, lines_of_128}, std::pair{lines_of_32, lines_of_32}})
        for (const bool accumulate : {false, true})
          same([&, a = a, b = b](Desk& desk) {
            desk.lay(Lay::contiguous);
            const RoundedBlocks left = rounded_blocks(desk, s.m, s.k, Dtype::f8e5m2, a),
                                right = rounded_blocks(desk, s.n, s.k, Dtype::f8e4m3, b);
            const Tensor out = desk.normal({s.m, s.n}, dtype), biased = desk.normal({s.m, s.n}, dtype);
            ScaledArgs how{left.inverses, right.inverses, {}, accumulate, a, b};
            desk.kernels().scaled_matmul(out, left.codes, right.codes, how);
            how.bias = desk.normal({s.n}, dtype);
            desk.kernels().scaled_matmul(biased, left.codes, right.codes, how);
            const Tolerance within = close(dtype, s.k, 15 * 15 * 16 * 16);
            desk.result("out", out, within);
            desk.result("with a bias", biased, within);
          });
}

}  // namespace
}  // namespace weft::conformance
