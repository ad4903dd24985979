// The library's products of groups in blocks of rows: right for every number of rows, with the same bits
// whoever computes.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "weft/backend/cpu/onednn/engine.h"
#include "weft/base/half.h"
#include "weft/base/random.h"

namespace weft::product {
namespace {

using fast::Type;

struct Case {
  std::int64_t rows, m, n;  // of a group, and of the weight
  bool sums_rows = false, b_turned = false, accumulate = false;
  Type out = Type::f32;
};

/// Rows that are further apart than they are long, as a slice's are.
struct Matrix16 {
  std::int64_t row;
  std::vector<bf16> numbers;

  Matrix16(std::int64_t rows, std::int64_t columns, std::uint64_t seed) : row(columns + 5) {
    std::vector<float> drawn(std::size_t(rows * row));
    fill_uniform(Draw({.seed = seed, .purpose = Purpose::test}), 0, drawn);
    for (const float x : drawn) numbers.emplace_back(x - 0.5F);
  }
  double at(std::int64_t i, std::int64_t j) const { return double(float(numbers[std::size_t(i * row + j)])); }
  Matrix matrix() const { return {numbers.data(), Type::bf16, row}; }
};

/// rows [rows, m] by a weight [m, n] or [n, m], or the gradient [m, n] of [rows, m] and [rows, n].
class Product {
 public:
  explicit Product(const Case& c)
      : c_(c),
        a_(c.rows, c.m, 1),
        b_(c.sums_rows  ? c.rows
           : c.b_turned ? c.n
                        : c.m,
           !c.sums_rows && c.b_turned ? c.m : c.n, 2) {}

  std::int64_t rows() const { return c_.sums_rows ? c_.m : c_.rows; }

  std::vector<float> run(Engine& engine, int threads) const {
    const std::int64_t out_row = c_.n + 3;
    std::vector<float> out(std::size_t(rows() * out_row), 0.25F);
    std::vector<bf16> small(out.size(), bf16(0.25F));
    Problem p{.m = rows(), .n = c_.n, .k = c_.sums_rows ? c_.rows : c_.m, .a = a_.matrix(), .b = b_.matrix()};
    p.a_turned = c_.sums_rows;
    p.b_turned = c_.b_turned;
    p.accumulate = c_.accumulate;
    p.out = {c_.out == Type::f32 ? static_cast<void*>(out.data()) : small.data(), c_.out, false};
    p.out_row = out_row;
    EXPECT_TRUE(engine.takes(p));
    std::vector<float> workspace(std::size_t(engine.bytes(p, threads) / 4 + 16));
    const auto ahead = -reinterpret_cast<std::intptr_t>(workspace.data()) & 63;
    engine.run(p, threads, workspace.data() + ahead / std::intptr_t(sizeof(float)));
    if (c_.out == Type::bf16)
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = small[i];
    return out;
  }

  double expected(std::int64_t i, std::int64_t j) const {
    double sum = c_.accumulate ? 0.25 : 0;
    if (c_.sums_rows)
      for (std::int64_t row = 0; row < c_.rows; ++row) sum += a_.at(row, i) * b_.at(row, j);
    else
      for (std::int64_t k = 0; k < c_.m; ++k) sum += a_.at(i, k) * (c_.b_turned ? b_.at(j, k) : b_.at(k, j));
    return sum;
  }

  /// That every number is the sum in double, and that what lies between rows is as it was.
  void expect(const std::vector<float>& found) const {
    const double rounding = c_.out == Type::bf16 ? 1.0 / 256 : 1e-5;
    for (std::int64_t i = 0; i < rows(); ++i)
      for (std::int64_t j = 0; j < c_.n + 3; ++j) {
        const double x = found[std::size_t(i * (c_.n + 3) + j)];
        if (j >= c_.n) {
          ASSERT_EQ(x, 0.25) << i << " " << j;
        } else {
          const double right = expected(i, j);
          ASSERT_NEAR(x, right, 1e-4 + std::abs(right) * rounding)
              << i << " " << j << " of " << c_.rows << " rows";
        }
      }
  }

 private:
  Case c_;
  Matrix16 a_, b_;
};

class OneDnnInBlocks : public testing::Test {
 protected:
  void SetUp() override {
    if (!engine) GTEST_SKIP() << "this build has no oneDNN, or this processor no AMX";
  }
  std::shared_ptr<Engine> engine = open_onednn_in_blocks();
};

TEST_F(OneDnnInBlocks, multiply_groups_of_any_size) {
  for (const std::int64_t rows : {1, 31, 32, 33, 500, 512, 513, 1100})
    for (const bool b_turned : {false, true})
      for (const bool accumulate : {false, true}) {
        const Case c{.rows = rows, .m = 70, .n = 130, .b_turned = b_turned, .accumulate = accumulate};
        const Product product(c);
        product.expect(product.run(*engine, 2));
      }
}

TEST_F(OneDnnInBlocks, round_their_results_once) {
  for (const std::int64_t rows : {40, 512}) {
    const Product product({.rows = rows, .m = 300, .n = 96, .b_turned = true, .out = Type::bf16});
    product.expect(product.run(*engine, 1));
  }
}

TEST_F(OneDnnInBlocks, sum_gradients_over_groups_of_any_size) {
  for (const std::int64_t rows : {1, 31, 32, 33, 512, 513, 1100})
    for (const bool accumulate : {false, true}) {
      const Product product({.rows = rows, .m = 80, .n = 140, .sums_rows = true, .accumulate = accumulate});
      product.expect(product.run(*engine, 2));
    }
}

TEST_F(OneDnnInBlocks, have_the_same_bits_whoever_computes) {
  for (const bool sums_rows : {false, true})
    for (const bool accumulate : {false, true})
      for (const std::int64_t rows : {100, 700}) {
        const Product product(
            {.rows = rows, .m = 330, .n = 540, .sums_rows = sums_rows, .accumulate = accumulate});
        const std::vector<float> one = product.run(*engine, 1);
        for (const int threads : {5, 3, 2}) EXPECT_EQ(product.run(*engine, threads) == one, true) << threads;
      }
}

// Sizes change in every step, and a device has its workspace from the first.
TEST_F(OneDnnInBlocks, ask_for_the_same_workspace_whatever_the_rows) {
  const auto bytes = [&](std::int64_t rows, bool sums_rows) {
    Problem p{.m = sums_rows ? 128 : rows, .n = 256, .k = sums_rows ? rows : 128};
    p.a = {nullptr, Type::bf16, 128};
    p.b = {nullptr, Type::bf16, 256};
    p.a_turned = sums_rows;
    p.out_row = 256;
    return engine->grouped_bytes(p, 2);
  };
  for (const bool sums_rows : {false, true}) {
    EXPECT_GT(bytes(1, sums_rows), 0);
    for (const std::int64_t rows : {64, 512, 5000}) EXPECT_EQ(bytes(rows, sums_rows), bytes(1, sums_rows));
  }
}

TEST_F(OneDnnInBlocks, leave_small_weights_and_other_types_to_our_own) {
  Problem p{.m = 100, .n = 64, .k = 64};
  p.a = {nullptr, Type::bf16, 64};
  p.b = {nullptr, Type::bf16, 64};
  EXPECT_TRUE(engine->takes(p));
  const auto refuses = [&](auto&& change) {
    Problem other = p;
    change(other);
    return !engine->takes(other) && engine->grouped_bytes(other, 2) == 0;
  };
  EXPECT_TRUE(refuses([](Problem& x) { x.n = 63; }));
  EXPECT_TRUE(refuses([](Problem& x) { x.k = 63; }));
  EXPECT_TRUE(refuses([](Problem& x) { x.a.type = Type::f32; }));
  EXPECT_TRUE(refuses([](Problem& x) { x.has_bias = true; }));
  EXPECT_TRUE(refuses([](Problem& x) { x.slabs = 2; }));
  EXPECT_TRUE(refuses([](Problem& x) { x.accumulate = true, x.out.type = Type::bf16; }));
  EXPECT_TRUE(refuses([](Problem& x) { x.a_turned = true, x.out.type = Type::bf16; }));
}

}  // namespace
}  // namespace weft::product
