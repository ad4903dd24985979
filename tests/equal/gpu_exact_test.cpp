// Exact mode on a GPU: every layout has the bits of one rank there, in every family.
#include <gpu_notes.h>
#include <gtest/gtest.h>

#include "tests/equal/gpus.h"
#include "tests/equal/same_bits.h"
#include "tests/support/gpu/emulated.h"
#include "weft/base/format.h"

using namespace weft;
using namespace weft::testing;

namespace {

Curve stepped(const ModelConfig& config, Cut cut, std::unique_ptr<Device> (*open)()) {
  cut.steps = 2;
  cut.open = open;
  return train(config, cut);
}
Curve exactly(const ModelConfig& config, Cut cut, std::unique_ptr<Device> (*open)()) {
  cut.exact = true;
  return stepped(config, cut, open);
}

struct Case {
  const char* name;
  Precision precision;
  std::vector<Cut> cuts;
  std::int64_t channels = 0;  // where they are not the family's
  double capacity = 0;        // of experts, which then have biases, too
};

const Cut widely{{.tp = 4, .dp = 1, .sequence = true}, 4}, along{{.cp = 2, .dp = 2, .zero = 1}, 1},
    deeply{{.tp = 2, .pp = 2, .dp = 1, .schedule = "zb-h1"}}, experts{{.dp = 2, .ep = 2, .zero = 1}, 1};

/// Products in f32 and by tensor cores; attention a query a warp and, of 64 channels, by tiles.
std::vector<Case> cases() {
  return {{"gpt2", Precision::f32, {widely, along, deeply}},
          {"gpt2", Precision::bf16, {deeply}, 64},
          {"llama", Precision::f16, {widely, along}},
          {"latent", Precision::bf16, {along, deeply}},
          {"mixture", Precision::f32, {experts}, 0, 0.5},
          {"mixture", Precision::bf16, {deeply}},
          {"delta", Precision::f32, {along}},
          {"hybrid", Precision::bf16, {along}},
          {"bert", Precision::bf16, {widely, along}},
          {"t5", Precision::bf16, {widely, deeply}}};
}

class ExactOnTheGpu : public ::testing::TestWithParam<Case> {};

// And those of the processor's exact mode, but for rounding.
TEST_P(ExactOnTheGpu, gives_the_bits_of_one_rank) {
  const Case& c = GetParam();
  ModelConfig config = shape_of(c.name);
  config.precision = c.precision;
  if (c.channels > 0) config.channels = c.channels;
  if (c.capacity > 0) {
    config.experts.router.capacity = c.capacity;
    config.linear_bias = true;
  }
  complete(config);
  const Cut one{.parallel = {.dp = 1}};
  const Curve alone = exactly(config, one, exact_gpu);
  for (const Cut& cut : c.cuts) expect_same_bits(exactly(config, cut, exact_gpu), alone, name_of(cut));
  EXPECT_EQ(difference(alone, exactly(config, one, nullptr), rounding_of(config, one)), "");
  EXPECT_EQ(join(emulated::take_reports(), "; "), "");
}

INSTANTIATE_TEST_SUITE_P(Models, ExactOnTheGpu, ::testing::ValuesIn(cases()), [](const auto& test) {
  const Case& c = test.param;
  return text(c.name, c.channels > 0 ? "_wide_" : "_", words(c.precision)[std::size_t(c.precision)]);
});

// What exact mode does not fix is seen: the same layouts part without it.
TEST(LayoutsOnTheGpu, part_without_exact_mode) {
  const ModelConfig config = shape_of("gpt2");
  const Cut two{.parallel = {.tp = 2, .dp = 1}};
  EXPECT_NE(stepped(config, two, fast_gpu).norms, stepped(config, {.parallel = {.dp = 1}}, fast_gpu).norms);
}

}  // namespace
