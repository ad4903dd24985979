// What must not change a bit of attention: threads, how queries are cut, and in exact mode how keys are cut.
#include <gtest/gtest.h>

#include <algorithm>

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
  for (const std::int64_t block : {0, 32, 100}) {
    SCOPED_TRACE(block);
    expect_same_for_all_threads({.sq = 300,
                                 .sk = 500,
                                 .b = 2,
                                 .g = 1,
                                 .d = 64,
                                 .how = {.mask = causal, .diagonal = 200, .block = block}});
    expect_same_for_all_threads(
        {.sq = 210, .sk = 210, .g = 2, .r = 5, .d = 16, .dtype = Dtype::bf16, .how = {.block = block}});
    expect_same_for_all_threads({.sq = 300,
                                 .sk = 500,
                                 .b = 2,
                                 .g = 1,
                                 .d = 64,
                                 .dtype = Dtype::bf16,
                                 .how = {.mask = causal, .diagonal = 200, .window = 150, .block = block}});
    expect_same_for_all_threads(
        {.sq = 100, .sk = 300, .b = 3, .g = 1, .r = 2, .d = 16, .how = {.block = block}, .biased = true});
  }
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

/// The keys cut into calls at `cuts`, merged in ascending order; the gradients added up likewise.
Answer cut_keys(const Example& whole, const std::vector<std::int64_t>& cuts) {
  Answer sum = testing::room_for(whole, Dtype::f32);
  std::vector<Example> parts;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    Example cut = whole;
    cut.in.k = whole.in.k.slice(0, cuts[i], cuts[i + 1] - cuts[i]);
    cut.in.v = whole.in.v.slice(0, cuts[i], cuts[i + 1] - cuts[i]);
    cut.how.diagonal -= cuts[i];
    cut.how.key0 += cuts[i];
    parts.push_back(cut);
    const Answer part = testing::room_for(cut, Dtype::f32);
    fast::attention(best(), i == 0 ? sum.out : part.out, cut.in, cut.how);
    if (i > 0) fast::merge_attention(best(), sum.out, part.out);
  }
  std::fill_n(sum.grads.dk.data<float>(), sum.grads.dk.elements(), 0.0F);
  std::fill_n(sum.grads.dv.data<float>(), sum.grads.dv.elements(), 0.0F);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    AttentionGrads grads = sum.grads;
    grads.accumulate = i > 0;
    grads.dk = sum.grads.dk.slice(0, cuts[i], cuts[i + 1] - cuts[i]);
    grads.dv = sum.grads.dv.slice(0, cuts[i], cuts[i + 1] - cuts[i]);
    fast::attention_backward(best(), grads, whole.dout, sum.out, parts[i].in, parts[i].how);
  }
  return sum;
}

void expect_same_by_key_blocks(const Problem& problem, const std::vector<std::int64_t>& cuts) {
  const auto device = device_of(2);
  const Example whole = testing::make(*device, problem);
  // In f32, as the parts are.
  const Answer expected = testing::room_for(whole, Dtype::f32);
  fast::attention(best(), expected.out, whole.in, whole.how);
  fast::attention_backward(best(), expected.grads, whole.dout, expected.out, whole.in, whole.how);
  EXPECT_TRUE(same(cut_keys(whole, cuts), expected));
}

TEST(AttentionBits, do_not_depend_on_calls_for_single_key_blocks) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16})
    for (const float dropout : {0.0F, 0.2F}) {
      SCOPED_TRACE(std::string(name(dtype)) + " " + std::to_string(dropout));
      Problem problem = {.sq = 150, .sk = 320, .b = 2, .g = 2, .d = 64, .dtype = dtype};
      problem.how = {.mask = causal, .diagonal = 170, .dropout = dropout, .block = 64};
      expect_same_by_key_blocks(problem, {0, 64, 128, 192, 256, 320});
      problem.how.block = 100;  // no whole number of tiles
      expect_same_by_key_blocks(problem, {0, 100, 200, 300, 320});
    }
}

}  // namespace
}  // namespace weft
