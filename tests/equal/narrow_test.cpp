// Gradients kept in bf16: under every stage and schedule, and in no more memory than is promised.
#include <gtest/gtest.h>

#include "tests/equal/run.h"
#include "tests/support/sanitized.h"

using namespace weft;
using namespace weft::testing;

namespace {

ModelConfig in_bf16(const char* name, int layers = 2) {
  ModelConfig config = shape_of(name, layers);
  config.precision = Precision::bf16;
  return config;
}

Cut narrow(const ParallelConfig& parallel, std::int64_t micro_batch = 2) {
  Cut cut{.parallel = parallel, .micro_batch = micro_batch, .steps = rounds(4)};
  cut.sum_in_bf16 = true;
  return cut;
}

}  // namespace

// One microbatch is rounded once, to eight bits: each element, and so the norm, is off by 2^-9 of itself. Of
// eight microbatches, each rounding is of a partial sum, and none of these is longer than thrice the whole.
TEST(SumInBf16, is_off_by_its_rounding_and_no_more) {
  for (const std::int64_t micro : {8, 1}) {
    Cut cut = narrow({.dp = 1}, micro);
    const Curve rounded = train(in_bf16("gpt2"), cut);
    cut.sum_in_bf16 = false;
    const Curve whole = train(in_bf16("gpt2"), cut);
    EXPECT_NE(rounded.norms, whole.norms);
    const double roundings = micro == 8 ? 1 : 3 * 8;
    EXPECT_NEAR(rounded.norms.front(), whole.norms.front(), 0x1p-9 * roundings * whole.norms.front());
    EXPECT_EQ(rounded.losses.front(), whole.losses.front());
    EXPECT_EQ(difference(rounded, whole, {.loss = 5e-3, .norm = 2e-2}), "");
  }
}

TEST(SumInBf16, gives_the_same_bits_in_any_buckets_and_where_states_are_cut) {
  for (const char* name : {"gpt2", "llama"}) {
    Cut cut = narrow({.tp = 2, .dp = 2, .sequence = true}, 1);
    const Curve plain = bits_of(in_bf16(name), cut);
    cut.parallel.bucket_elements = 600;
    cut.parallel.overlap_reduce = true;
    EXPECT_EQ(bits_of(in_bf16(name), cut), plain);
    cut.parallel.zero = 1;
    EXPECT_EQ(bits_of(in_bf16(name), cut), plain);
  }
}

// Shares of a microbatch are rounded as the whole is.
TEST(SumInBf16, of_one_microbatch_gives_the_same_bits_in_every_stage) {
  const Curve whole = bits_of(in_bf16("gpt2"), narrow({.dp = 2}, 4));
  for (const int zero : {1, 2, 3})
    EXPECT_EQ(bits_of(in_bf16("gpt2"), narrow({.dp = 2, .zero = zero}, 4)), whole) << "stage " << zero;
  EXPECT_EQ(bits_of(in_bf16("gpt2"), narrow({.dp = 2, .zero = 3}, 1)),
            bits_of(in_bf16("gpt2"), narrow({.dp = 2, .zero = 2}, 1)));
}

TEST(SumInBf16, does_not_show_the_schedule) {
  const auto of = [](const char* schedule, int chunks) {
    return bits_of(in_bf16("gpt2", 4),
                   narrow({.pp = 2, .dp = 1, .schedule = schedule, .virtual_stages = chunks}, 1));
  };
  const Curve first = of("1f1b", 1);
  EXPECT_TRUE(first.copies_agree);
  EXPECT_EQ(of("gpipe", 1), first);
  EXPECT_EQ(of("zb-h1", 1), first);
  EXPECT_EQ(of("zb-v", 2), first);
}

TEST(SumInBf16, trains_as_one_rank_does) {
  for (const char* name : {"gpt2", "mixture", "t5"}) {
    const ModelConfig config = in_bf16(name);
    const Curve one = train(config, narrow({.dp = 1}, 1));
    const Cut cuts[] = {narrow({.dp = 2}, 1), narrow({.tp = 2, .dp = 2, .zero = 2}, 1),
                        narrow({.pp = 2, .dp = 2, .zero = 3}, 1)};
    for (const Cut& cut : cuts)
      EXPECT_EQ(difference(train(config, cut), one, rounding_of(config, cut)), "")
          << name << " " << name_of(cut);
  }
}

TEST(SumInBf16, holds_what_the_counting_device_counts) {
  for (const char* name : {"gpt2", "mixture", "t5"})
    for (const int zero : {0, 1, 2, 3})
      EXPECT_EQ(memory_difference(in_bf16(name), narrow({.dp = 2, .zero = zero}, 1)), "")
          << name << " " << zero;
  Cut staged = narrow({.tp = 2, .pp = 2, .dp = 2, .sequence = true, .schedule = "zb-h1"}, 1);
  EXPECT_EQ(memory_difference(in_bf16("gpt2", 4), staged), "");
}

TEST(SumInBf16, finds_what_is_not_finite) {
  const auto said = [](bool narrow_sums) {
    Cut cut = narrow({.dp = 2}, 1);
    cut.sum_in_bf16 = narrow_sums;
    return searched(in_bf16("gpt2"), cut, "layers.1.mlp.up.weight");
  };
  EXPECT_EQ(said(true), said(false));
}
