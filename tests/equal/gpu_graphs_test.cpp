// Steps whose launches the GPU keeps as graphs have the bits of steps that launch one by one.
#include <gtest/gtest.h>

#include "tests/equal/gpus.h"
#include "tests/equal/run.h"
#include "tests/support/gpu/emulated.h"
#include "tests/support/gpu/runtime.h"
#include "weft/base/format.h"

using namespace weft;
using namespace weft::testing;

namespace {

Cut steps_of(int steps) {
  Cut cut{{.dp = 1}, 2};
  cut.steps = steps;
  return cut;
}

void expect_the_same_bits(const ModelConfig& config, Cut cut) {
  cut.open = fast_gpu;
  const Curve expected = train(config, cut);
  cut.open = by_graphs;
  EXPECT_EQ(train(config, cut), expected);
  EXPECT_EQ(join(emulated::take_reports(), "; "), "");
}

TEST(GraphsOfTheGpu, give_the_bits_of_launches_one_by_one_in_every_family) {
  emulated::set_pace(5);
  for (const char* name : {"llama", "latent", "mixture", "bert", "t5"}) {
    SCOPED_TRACE(name);
    expect_the_same_bits(shape_of(name), steps_of(4));
  }
}

// As late as may be, at once, and in a shuffled order.
TEST(GraphsOfTheGpu, give_them_whenever_the_gpu_works) {
  for (const unsigned pace : {0U, 1U, 6U}) {
    SCOPED_TRACE(pace);
    emulated::set_pace(pace);
    expect_the_same_bits(shape_of("gpt2"), steps_of(4));
  }
}

// Words between ranks end a list: copies through the host, or another stream that follows.
TEST(GraphsOfTheGpu, give_them_on_two_ranks) {
  for (Cut cut :
       {Cut{{.tp = 2, .dp = 1, .sequence = true}, 2}, {{.pp = 2, .dp = 1}, 1}, {{.dp = 2, .zero = 1}, 1}}) {
    SCOPED_TRACE(name_of(cut));
    cut.steps = 4;
    expect_the_same_bits(shape_of("gpt2"), cut);
  }
}

TEST(GraphsOfTheGpu, give_them_in_half_precision_and_in_eight_bits) {
  ModelConfig config = shape_of("mixture");
  config.precision = Precision::bf16;
  config.fp8 = {.format = Fp8Format::hybrid};
  expect_the_same_bits(config, steps_of(3));
  config.fp8.recipe = Fp8Recipe::blockwise;
  expect_the_same_bits(config, steps_of(3));
}

}  // namespace
