// The product of bf16 pairs against sums in double, and against itself cut otherwise.
#include "weft/backend/cpu/product/pairs.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <vector>

#include "weft/backend/cpu/product/check.h"
#include "weft/base/half.h"
#include "weft/base/random.h"

namespace weft::product {
namespace {

using fast::Type;

/// The engine, where this processor has the instruction.
std::unique_ptr<PairEngine> engine_here() { return PairEngine::open(fast::best_here()); }

struct Halves {
  std::int64_t row;
  std::vector<std::uint16_t> bits;

  Halves(std::int64_t rows, std::int64_t columns, std::uint64_t seed)
      : row(columns + columns % 2 + std::int64_t(seed % 2) * 2), bits(std::size_t(rows * row)) {
    std::vector<float> drawn(bits.size());
    fill_uniform(Draw({.seed = seed, .purpose = Purpose::test}), 0, drawn);
    for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = bf16(drawn[i] - 0.5F).bits;
  }
  double at(std::int64_t i, std::int64_t j) const {
    return double(float(bf16::from_bits(bits[std::size_t(i * row + j)])));
  }
  Matrix matrix() { return {bits.data(), Type::bf16, row}; }
};

struct Case {
  std::int64_t m, n, k;
  bool a_turned, b_turned, accumulate;
  int threads;
};

/// The greatest distance from the sum in double, in terms of what float sums of so many may be off.
double worst(PairEngine& engine, const Case& c) {
  Halves a(c.a_turned ? c.k : c.m, c.a_turned ? c.m : c.k, 20);
  Halves b(c.b_turned ? c.n : c.k, c.b_turned ? c.k : c.n, 21);
  std::vector<float> out(std::size_t(c.m * c.n), 0.5F);
  Problem p{.m = c.m, .n = c.n, .k = c.k, .a = a.matrix(), .b = b.matrix()};
  p.a_turned = c.a_turned;
  p.b_turned = c.b_turned;
  p.accumulate = c.accumulate;
  p.out = {out.data(), Type::f32, false};
  p.out_row = c.n;
  if (!engine.takes(p)) return 1e30;
  std::vector<float> workspace(std::size_t(engine.bytes(p, c.threads) / 4) + 16, 1e30F);
  engine.run(p, c.threads, workspace.data());
  double most = 0;
  for (std::int64_t i = 0; i < c.m; ++i)
    for (std::int64_t j = 0; j < c.n; ++j) {
      double sum = c.accumulate ? 0.5 : 0, size = 0.5;
      for (std::int64_t k = 0; k < c.k; ++k) {
        const double term = (c.a_turned ? a.at(k, i) : a.at(i, k)) * (c.b_turned ? b.at(j, k) : b.at(k, j));
        sum += term;
        size += std::abs(term);
      }
      most = std::max(most, std::abs(out[std::size_t(i * c.n + j)] - sum) / size);
    }
  return most;
}

TEST(ProductInPairs, equals_sums_in_double) {
  const auto engine = engine_here();
  if (!engine) GTEST_SKIP() << "this processor multiplies no pairs of bf16";
  EXPECT_TRUE(rc::check([&] {
    const Case c{.m = *rc::gen::inRange(1, 100),
                 .n = *rc::gen::inRange(1, 140),
                 .k = *rc::gen::inRange(1, 200),
                 .a_turned = *rc::gen::arbitrary<bool>(),
                 .b_turned = *rc::gen::arbitrary<bool>(),
                 .accumulate = *rc::gen::arbitrary<bool>(),
                 .threads = *rc::gen::inRange(1, 4)};
    RC_ASSERT(worst(*engine, c) < 2e-6);
  }));
  for (const bool a_turned : {false, true})
    for (const bool b_turned : {false, true})
      for (const std::int64_t m : {40, 280})
        EXPECT_LT(worst(*engine, {m, 70, 901, a_turned, b_turned, true, 2}), 4e-6) << a_turned << b_turned;
}

TEST(ProductInPairs, does_not_depend_on_how_it_is_cut) {
  const auto engine = engine_here();
  if (!engine) GTEST_SKIP() << "this processor multiplies no pairs of bf16";
  for (const std::int64_t k : {32, 40, 768, 1500})
    for (const bool a_turned : {false, true})
      for (const bool b_turned : {false, true}) {
        const CutForm form{.k = k, .type = Type::bf16, .a_turned = a_turned, .b_turned = b_turned};
        EXPECT_EQ(cutting_changes(*engine, form, 3), "") << k << a_turned << b_turned;
      }
}

TEST(ProductInPairs, leaves_to_others_what_are_no_words) {
  const auto engine = engine_here();
  if (!engine) GTEST_SKIP() << "this processor multiplies no pairs of bf16";
  Halves a(8, 16, 1), b(8, 16, 3);
  std::vector<float> out(64);
  Problem p{.m = 8, .n = 8, .k = 16, .a = a.matrix(), .b = b.matrix()};
  p.b_turned = true;
  p.out = {out.data(), Type::f32, false};
  p.out_row = 8;
  EXPECT_TRUE(engine->takes(p));
  const auto refuses = [&](auto&& change) {
    Problem other = p;
    change(other);
    return !engine->takes(other);
  };
  EXPECT_TRUE(refuses([](Problem& x) { x.a.row = 17; }));
  EXPECT_TRUE(refuses([](Problem& x) { x.b.row = 17; }));
  EXPECT_TRUE(refuses([](Problem& x) { x.a.from = static_cast<const std::uint16_t*>(x.a.from) + 1; }));
  EXPECT_TRUE(refuses([](Problem& x) { x.slabs = 2; }));
  EXPECT_TRUE(refuses([](Problem& x) { x.has_bias = true; }));
  EXPECT_TRUE(refuses([](Problem& x) { x.k = 15, x.out.type = Type::bf16; }));
  EXPECT_TRUE(refuses([](Problem& x) { x.a.type = Type::f16; }));
}

}  // namespace
}  // namespace weft::product
