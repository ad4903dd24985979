// What must not change a bit of attention: threads, and how queries are cut.
#include <gtest/gtest.h>

#include "tests/backend/attention_example.h"

namespace weft {
namespace {

using testing::Answer;
using testing::Example;
using testing::Problem;
using testing::same;

std::unique_ptr<CpuDevice> device_of(int threads) {
  return std::make_unique<CpuDevice>(CpuOptions{.threads = threads, .kernels = CpuKernels::reference});
}
const fast::AttentionLoops& best() { return fast::attention_loops(fast::best_here()); }

constexpr Mask causal = Mask::causal;

void expect_same_for_all_threads(const Problem& problem) {
  const auto one = device_of(1);
  const Example alone = testing::make(*one, problem);
  const Answer expected = testing::compute(best(), alone);
  for (const int threads : {2, 3, 16}) {
    const auto device = device_of(threads);
    const Example example = testing::make(*device, problem);
    EXPECT_TRUE(same(testing::compute(best(), example), expected)) << threads << " threads";
  }
}

TEST(AttentionBits, do_not_depend_on_the_number_of_threads) {
  const AttentionArgs late = {.mask = causal, .diagonal = 200};
  expect_same_for_all_threads({.sq = 300, .sk = 500, .b = 2, .g = 1, .d = 64, .how = late});
  expect_same_for_all_threads({.sq = 210, .sk = 210, .g = 2, .r = 5, .d = 16, .dtype = Dtype::bf16});
  AttentionArgs windowed = late;
  windowed.window = 150;
  expect_same_for_all_threads(
      {.sq = 300, .sk = 500, .b = 2, .g = 1, .d = 64, .dtype = Dtype::bf16, .how = windowed});
  expect_same_for_all_threads({.sq = 100, .sk = 300, .b = 3, .g = 1, .r = 2, .d = 16, .biased = true});
}

/// Forward of queries [from, from + count).
Answer for_queries(const Example& whole, std::int64_t from, std::int64_t count) {
  Example cut = whole;
  cut.in.q = whole.in.q.slice(0, from, count);
  cut.dout = whole.dout.slice(0, from, count);
  cut.how.diagonal += from;
  return testing::compute(best(), cut);
}

TEST(AttentionBits, do_not_depend_on_how_queries_are_cut) {
  const auto device = device_of(2);
  const AttentionArgs how = {.mask = causal, .diagonal = 60, .window = 120};
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    SCOPED_TRACE(name(dtype));
    const Example whole =
        testing::make(*device, {.sq = 200, .sk = 260, .g = 2, .d = 32, .dtype = dtype, .how = how});
    const Answer expected = testing::compute(best(), whole);
    for (const std::int64_t count : {1, 13, 48, 100}) {
      const Answer part = for_queries(whole, 77, count);
      EXPECT_TRUE(same(part.out.o, expected.out.o.slice(0, 77, count))) << count;
      EXPECT_TRUE(same(part.out.lse, expected.out.lse.slice(2, 77, count))) << count;
      EXPECT_TRUE(same(part.grads.dq, expected.grads.dq.slice(0, 77, count))) << count;
    }
  }
}

}  // namespace
}  // namespace weft
