// Tiles cover a result once, are small, and share it out among threads.
#include "weft/backend/cpu/product/tiles.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

namespace weft::product {
namespace {

struct Size {
  std::int64_t m, n;
  int threads;
};

Size any_size() {
  const auto side = [] {
    return *rc::gen::element<std::int64_t>(1, 2, 3, 4, 63, 64, 65, 768, 2100) + *rc::gen::inRange(0, 40);
  };
  return {side(), side(), *rc::gen::inRange(1, 40)};
}

TEST(Tiles, cover_every_element_once) {
  EXPECT_TRUE(rc::check([] {
    const Size s = any_size();
    std::vector<int> covered(std::size_t(s.m * s.n));
    for (const Tile& tile : tiles(s.m, s.n, {.threads = s.threads}))
      for (std::int64_t i = tile.i; i < tile.i + tile.m; ++i)
        for (std::int64_t j = tile.j; j < tile.j + tile.n; ++j) ++covered[std::size_t(i * s.n + j)];
    RC_ASSERT(std::ranges::count(covered, 1) == s.m * s.n);
  }));
}

TEST(Tiles, have_sums_that_fit_a_cache) {
  EXPECT_TRUE(rc::check([] {
    const Size s = any_size();
    for (const Tile& tile : tiles(s.m, s.n, {.threads = s.threads})) {
      RC_ASSERT(tile.m <= 416);
      RC_ASSERT(tile.n <= 416);
    }
  }));
}

TEST(Tiles, are_at_least_two_in_a_row_of_four_columns_and_none_is_one_row_or_column) {
  EXPECT_TRUE(rc::check([] {
    const Size s = any_size();
    for (const Tile& tile : tiles(s.m, s.n, {.threads = s.threads})) {
      if (s.n >= 4) RC_ASSERT(tile.n < s.n);
      if (s.n > 1) RC_ASSERT(tile.n > 1);
      if (s.m > 1) RC_ASSERT(tile.m > 1);
    }
  }));
}

TEST(Tiles, are_no_smaller_than_asked_for) {
  EXPECT_TRUE(rc::check([] {
    const Size s = any_size();
    for (const Tile& tile : tiles(s.m, s.n, {.threads = s.threads, .most = 256, .least = 64})) {
      RC_ASSERT(tile.m >= std::min(s.m, std::int64_t{64}));
      RC_ASSERT(tile.n >= std::min(s.n, std::int64_t{64}));
      RC_ASSERT(std::max(tile.m, tile.n) <= 256 + 32);
    }
  }));
}

TEST(Tiles, are_as_many_as_threads_where_the_result_is_large) {
  for (const int threads : {1, 2, 3, 7, 16})
    EXPECT_GE(std::ssize(tiles(512, 768, {.threads = threads})), threads);
}

TEST(Tiles, are_of_few_sizes) {
  std::vector<std::pair<std::int64_t, std::int64_t>> sizes;
  for (const Tile& tile : tiles(2048, 4096, {.threads = 2})) sizes.emplace_back(tile.m, tile.n);
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  EXPECT_LE(sizes.size(), 4U);
}

TEST(Tiles, are_products_of_their_own_rows_and_columns) {
  char memory[64];
  Problem p{.m = 8, .n = 6, .k = 5};
  p.a = {memory, fast::Type::bf16, 5};
  p.b = {memory, fast::Type::bf16, 6};
  p.out = {memory, fast::Type::f32, false};
  p.out_row = 6;
  const Tile tile{.i = 2, .m = 3, .j = 4, .n = 2};
  const Problem one = part(p, tile);
  EXPECT_EQ(one.m, 3);
  EXPECT_EQ(one.n, 2);
  EXPECT_EQ(one.a.from, memory + 2 * 5 * 2);
  EXPECT_EQ(one.b.from, memory + 4 * 2);
  EXPECT_EQ(static_cast<const char*>(one.out.to), memory + (2 * 6 + 4) * 4);
  EXPECT_EQ(one.bias.from, nullptr);
  p.a_turned = p.b_turned = true;
  EXPECT_EQ(part(p, tile).a.from, memory + 2 * 2);
  EXPECT_EQ(part(p, tile).b.from, memory + 4 * 6 * 2);
}

}  // namespace
}  // namespace weft::product
