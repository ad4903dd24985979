// Sums and maxima over ranks against a tree of single numbers: every type, lengths around a block and a word.
#include "weft/comm/tree_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "weft/base/half.h"
#include "weft/base/random.h"

namespace weft {
namespace {

/// Numbers that a sum must round, and among them what has no number.
template <class T>
std::vector<T> numbers(std::int64_t count, std::uint64_t seed) {
  std::vector<float> floats(static_cast<std::size_t>(count));
  fill_uniform(Draw({.seed = seed, .purpose = Purpose::test}), 0, floats);
  std::vector<T> all;
  for (const float x : floats) all.push_back(T(100 * (x - 0.5F)));
  if (count > 3) all[std::size_t(seed % 4)] = T(std::numeric_limits<float>::quiet_NaN());
  if (count > 9)
    all[5 + std::size_t(seed % 2)] =
        T((seed % 2 == 0 ? 1.0F : -1.0F) * std::numeric_limits<float>::infinity());
  return all;
}

template <class T>
float tree(Reduce how, const std::vector<std::vector<T>>& parts, std::size_t i, std::size_t first,
           std::size_t last) {
  if (last - first == 1) return float(parts[first][i]);
  const std::size_t middle = first + (last - first + 1) / 2;
  const float a = tree(how, parts, i, first, middle), b = tree(how, parts, i, middle, last);
  if (how == Reduce::sum) return a + b;
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<float>::quiet_NaN() : std::max(a, b);
}

template <class T>
void expect_the_tree(Dtype dtype, Reduce how, std::size_t ranks, std::int64_t count) {
  std::vector<std::vector<T>> parts;
  for (std::size_t r = 0; r < ranks; ++r) parts.push_back(numbers<T>(count, r));
  std::vector<std::vector<T>> work = parts;  // the results lie where the parts do
  std::vector<const void*> from;
  std::vector<void*> to;
  for (auto& part : work) {
    from.push_back(part.data());
    to.push_back(part.data());
  }
  reduce_parts({dtype, how, count}, to, from);
  for (std::size_t i = 0; i < std::size_t(count); ++i) {
    const float expected = float(T(tree(how, parts, i, 0, ranks)));
    for (const auto& result : work) {
      if (std::isnan(expected))
        ASSERT_TRUE(std::isnan(float(result[i]))) << name(dtype) << " " << i << " of " << count;
      else
        ASSERT_EQ(float(result[i]), expected) << name(dtype) << " " << i << " of " << count;
    }
  }
}

TEST(ReduceParts, is_a_balanced_tree_in_f32_rounded_once) {
  for (const Reduce how : {Reduce::sum, Reduce::max})
    for (const std::size_t ranks : {1U, 2U, 3U, 5U, 8U})
      for (const std::int64_t count : {1, 2, 7, 511, 512, 513, 1025}) {
        expect_the_tree<float>(Dtype::f32, how, ranks, count);
        expect_the_tree<bf16>(Dtype::bf16, how, ranks, count);
        expect_the_tree<f16>(Dtype::f16, how, ranks, count);
      }
}

}  // namespace
}  // namespace weft
