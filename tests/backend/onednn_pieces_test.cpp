// The library's products in pieces: right, and with the same bits however a product is cut and whoever holds
// its slabs.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ostream>
#include <vector>

#include "weft/backend/cpu/onednn/engine.h"
#include "weft/backend/cpu/product/check.h"
#include "weft/backend/cpu/product/tiles.h"
#include "weft/base/half.h"
#include "weft/base/random.h"

namespace weft::product {
namespace {

using fast::Type;

struct Case {
  std::int64_t m, n, k;
  Type out = Type::f32;
  bool a_turned = false, b_turned = false, accumulate = false, bias = false;
  int slabs = 1, threads = 1;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.m << "x" << c.n << "x" << c.k << " out " << int(c.out) << " turned " << c.a_turned << c.b_turned
       << " accumulate " << c.accumulate << " bias " << c.bias << " slabs " << c.slabs;
}

std::vector<bf16> numbers(std::int64_t count, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  fill_uniform(Draw({.seed = seed, .purpose = Purpose::test}), 0, values);
  std::vector<bf16> out;
  for (const float value : values) out.emplace_back(value - 0.5F);
  return out;
}

/// A product and its operands; results as floats, whatever their type.
class Multiplied {
 public:
  explicit Multiplied(const Case& c)
      : c_(c), a_(numbers(c.m * c.k, 1)), b_(numbers(c.k * c.n, 2)), bias_(numbers(c.n, 3)) {}

  /// k from `from` on, where only a part of it is held.
  std::vector<float> run(Engine& engine, std::int64_t from, std::int64_t k, int slabs) const {
    Problem p = problem();
    p.a.from = a_.data() + from * (c_.a_turned ? c_.m : 1);
    p.b.from = b_.data() + from * (c_.b_turned ? 1 : c_.n);
    p.k = k;
    p.slabs = slabs;
    return computed(engine, p, {0, c_.m, 0, c_.n});
  }
  std::vector<float> run(Engine& engine) const { return run(engine, 0, c_.k, c_.slabs); }

  /// What a part of the result is, computed alone: the rest has what it had.
  std::vector<float> run(Engine& engine, const Tile& tile) const { return computed(engine, problem(), tile); }

  double expected(std::int64_t i, std::int64_t j) const {
    double sum = (c_.bias ? double(bias_[std::size_t(j)]) : 0) + (c_.accumulate ? 0.25 : 0);
    for (std::int64_t k = 0; k < c_.k; ++k)
      sum += double(a_[std::size_t(c_.a_turned ? k * c_.m + i : i * c_.k + k)]) *
             double(b_[std::size_t(c_.b_turned ? j * c_.k + k : k * c_.n + j)]);
    return sum;
  }

 private:
  Problem problem() const {
    Problem p;
    p.m = c_.m;
    p.n = c_.n;
    p.k = c_.k;
    p.a = {a_.data(), Type::bf16, c_.a_turned ? c_.m : c_.k};
    p.b = {b_.data(), Type::bf16, c_.b_turned ? c_.k : c_.n};
    p.a_turned = c_.a_turned;
    p.b_turned = c_.b_turned;
    p.accumulate = c_.accumulate;
    p.has_bias = c_.bias;
    p.bias = {bias_.data(), Type::bf16};
    p.slabs = c_.slabs;
    p.out_row = c_.n;
    return p;
  }
  std::vector<float> computed(Engine& engine, Problem p, const Tile& tile) const {
    std::vector<float> out(std::size_t(c_.m * c_.n), 0.25F);
    std::vector<bf16> small(out.size());
    p.out = {c_.out == Type::f32 ? static_cast<void*>(out.data()) : small.data(), c_.out, false};
    p = part(p, tile);
    std::vector<float> workspace(std::size_t(engine.bytes(p, c_.threads) / 4 + 16));
    const auto ahead = -reinterpret_cast<std::intptr_t>(workspace.data()) & 63;
    engine.run(p, c_.threads, workspace.data() + ahead / std::intptr_t(sizeof(float)));
    if (c_.out == Type::bf16)
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = small[i];
    return out;
  }

  Case c_;
  std::vector<bf16> a_, b_, bias_;
};

std::shared_ptr<Engine> pieces() {
  auto engine = open_onednn_in_pieces();
  return engine && engine->takes({.k = 64, .a = {nullptr, Type::bf16, 8}, .b = {nullptr, Type::bf16, 8}})
             ? engine
             : nullptr;
}

class OneDnnInPieces : public testing::TestWithParam<Case> {};

TEST_P(OneDnnInPieces, gives_the_sums_of_plain_loops) {
  const auto engine = pieces();
  if (!engine) GTEST_SKIP() << "this build or processor has no bf16 of oneDNN's";
  const Case c = GetParam();
  const Multiplied product(c);
  const std::vector<float> found = product.run(*engine);
  const double rounding = c.out == Type::bf16 ? 1.0 / 256 : 1e-5;
  for (std::int64_t i = 0; i < c.m; ++i)
    for (std::int64_t j = 0; j < c.n; ++j) {
      const double expected = product.expected(i, j);
      // A chain of k roundings to f32 and, for bf16, the last one.
      ASSERT_NEAR(found[std::size_t(i * c.n + j)], expected, 1e-4 + std::abs(expected) * rounding)
          << i << " " << j;
    }
}

INSTANTIATE_TEST_SUITE_P(Forms, OneDnnInPieces,
                         testing::Values(Case{5, 7, 40},
                                         Case{300, 270, 64, Type::bf16, false, true, false, true},
                                         Case{70, 260, 800, Type::f32, true, false, true, false, 1, 2},
                                         Case{1, 40, 400, Type::bf16},
                                         Case{40, 1, 400, Type::f32, false, true},
                                         Case{1, 1, 33, Type::f32, true, true, true},
                                         Case{33, 65, 3200, Type::f32, false, true, false, false, 8, 2},
                                         Case{64, 48, 96, Type::f32, true, false, false, false, 4}));

// What exact mode asks of an engine, for the lengths that layers have and some that they do not. The shortest
// it does not take: with AMX they depend on the cut.
TEST(OneDnnInPieces, keeps_every_bit_however_a_product_is_cut) {
  const auto engine = pieces();
  if (!engine) GTEST_SKIP() << "this build or processor has no bf16 of oneDNN's";
  for (const std::int64_t k : {32, 40, 384, 400, 768, 1030, 3072})
    for (const bool a_turned : {false, true})
      for (const bool b_turned : {false, true})
        EXPECT_EQ(cutting_changes(*engine,
                                  {.k = k,
                                   .type = Type::bf16,
                                   .out = a_turned ? Type::f32 : Type::bf16,
                                   .a_turned = a_turned,
                                   .b_turned = b_turned,
                                   .accumulate = a_turned,
                                   .bias = !a_turned},
                                  2),
                  "")
            << k << a_turned << b_turned;
}

Case any_case() {
  const auto side = [] { return *rc::gen::inRange<std::int64_t>(1, *rc::gen::element(100, 300)); };
  return {.m = side(),
          .n = side(),
          .k = *rc::gen::inRange<std::int64_t>(32, 1200),
          .a_turned = *rc::gen::arbitrary<bool>(),
          .b_turned = *rc::gen::arbitrary<bool>(),
          .accumulate = *rc::gen::arbitrary<bool>(),
          .threads = *rc::gen::inRange(1, 3)};
}

// The library's loops for odd sizes are many: some were found by this alone.
TEST(OneDnnInPieces, keeps_every_bit_of_any_part) {
  const auto engine = pieces();
  if (!engine) GTEST_SKIP() << "this build or processor has no bf16 of oneDNN's";
  EXPECT_TRUE(rc::check([&] {
    const Case c = any_case();
    const Multiplied product(c);
    const std::int64_t m = *rc::gen::inRange<std::int64_t>(1, c.m + 1),
                       n = *rc::gen::inRange<std::int64_t>(1, c.n + 1);
    const Tile tile{*rc::gen::inRange<std::int64_t>(0, c.m - m + 1), m,
                    *rc::gen::inRange<std::int64_t>(0, c.n - n + 1), n};
    const std::vector<float> whole = product.run(*engine), some = product.run(*engine, tile);
    for (std::int64_t i = tile.i; i < tile.i + m; ++i) {
      const auto row = whole.begin() + i * c.n + tile.j;
      RC_ASSERT(std::equal(row, row + n, some.begin() + i * c.n + tile.j));
    }
  }));
}

TEST(OneDnnInPieces, adds_slabs_as_ranks_do_that_hold_them) {
  const auto engine = pieces();
  if (!engine) GTEST_SKIP() << "this build or processor has no bf16 of oneDNN's";
  const Case c{66, 90, 8 * 400, Type::f32, false, true, false, false, 8};
  const Multiplied product(c);
  std::vector<std::vector<float>> parts;
  for (int rank = 0; rank < 4; ++rank) parts.push_back(product.run(*engine, rank * 800, 800, 2));
  for (std::size_t step = 1; step < 4; step *= 2)
    for (std::size_t i = 0; i < 4; i += 2 * step)
      for (std::size_t at = 0; at < parts[i].size(); ++at) parts[i][at] += parts[i + step][at];
  EXPECT_EQ(product.run(*engine), parts.front());
}

}  // namespace
}  // namespace weft::product
