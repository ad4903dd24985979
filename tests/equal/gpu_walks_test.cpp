// Steps whose products have gelu in them, as on GPUs of compute capability 9 and more: by fewer launches.
#include <gtest/gtest.h>
#include <runtime.h>

#include "tests/equal/gpus.h"
#include "tests/equal/run.h"
#include "tests/support/gpu/emulated.h"
#include "weft/base/format.h"

using namespace weft;
using namespace weft::testing;

namespace {

Curve stepped(const ModelConfig& config, Cut cut) {
  cut.steps = 3;
  cut.open = fast_gpu;
  return train(config, cut);
}

ModelConfig halves(const char* family, Precision precision) {
  ModelConfig config = shape_of(family);
  config.precision = precision;
  return config;
}

TEST(StepsWithGeluInProducts, are_those_of_the_processor) {
  const emulated::CardsHere nine({.capability = 9});
  for (const char* family : {"gpt2", "bert", "t5"})
    for (const Precision precision : {Precision::bf16, Precision::f16})
      for (const Cut& cut : {Cut{{.dp = 1}, 4}, {{.tp = 2, .dp = 1, .sequence = true}, 4}}) {
        SCOPED_TRACE(text(family, " ", words(precision)[std::size_t(precision)], " ", name_of(cut)));
        const ModelConfig config = halves(family, precision);
        Cut on_processor = cut;
        on_processor.steps = 3;
        EXPECT_EQ(difference(stepped(config, cut), train(config, on_processor), rounding_of(config, cut)),
                  "");
        EXPECT_EQ(join(emulated::take_reports(), "; "), "");
      }
}

/// Launches of a training.
std::uint64_t launches(const ModelConfig& config) {
  const std::uint64_t before = emulated::meter().asked;
  stepped(config, {{.dp = 1}, 4});
  return emulated::meter().asked - before;
}

// A walk each way, of every layer, microbatch and step, and one more where nothing goes back. In f32 and
// elsewhere products are as they were.
TEST(StepsWithGeluInProducts, have_a_launch_less_each_way) {
  constexpr int layers = 2, microbatches = 2, steps = 3;
  const std::uint64_t of_half = launches(halves("gpt2", Precision::bf16)),
                      of_f32 = launches(halves("gpt2", Precision::f32));
  const emulated::CardsHere nine({.capability = 9});
  EXPECT_EQ(launches(halves("gpt2", Precision::f32)), of_f32);
  const std::uint64_t evaluated = layers * microbatches;
  EXPECT_EQ(of_half - launches(halves("gpt2", Precision::bf16)),
            std::uint64_t(2 * layers * microbatches * steps) + evaluated);
}

// What is computed again is computed by the same products.
TEST(StepsWithGeluInProducts, have_the_same_bits_with_recomputation) {
  const emulated::CardsHere nine({.capability = 9});
  ModelConfig config = halves("gpt2", Precision::bf16);
  const Curve expected = stepped(config, {{.dp = 1}, 4});
  config.recompute = {.what = Recompute::selective, .modules = {RecomputeModule::mlp}};
  const Curve found = stepped(config, {{.dp = 1}, 4});
  EXPECT_EQ(found.losses, expected.losses);
  EXPECT_EQ(found.norms, expected.norms);
}

}  // namespace
