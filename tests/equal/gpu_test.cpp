// Trainings on the emulated GPU, alone and on several ranks that speak through the host, against the
// processor's. The watcher must have found nothing.
#include <gpu_notes.h>
#include <gtest/gtest.h>

#include "tests/equal/gpus.h"
#include "tests/equal/run.h"
#include "tests/support/gpu/emulated.h"
#include "weft/base/error.h"
#include "weft/base/format.h"

using namespace weft;
using namespace weft::testing;

namespace {

std::vector<Cut> cuts() {
  return {{{.dp = 1}, 2},          {{.tp = 2, .dp = 1}, 2},   {{.tp = 2, .dp = 1, .sequence = true}, 2},
          {{.pp = 2, .dp = 1}, 1}, {{.dp = 2, .zero = 1}, 1}, {{.cp = 2, .dp = 1}, 2}};
}

class OnTheGpu : public ::testing::TestWithParam<std::tuple<std::string, Cut>> {};

/// Losses are near 3.4, so this is 8 steps of f32 for them: products and reductions add in another order.
constexpr Rounding rounding{.loss = 2e-6, .norm = 1e-4};

constexpr Rounding of_muon{.loss = 1e-4, .norm = 1e-3};

/// Steps and an evaluation are the processor's, and the watcher found nothing.
void expect_the_processors(const ModelConfig& config, Cut cut, const Rounding& within) {
  cut.steps = 3;
  const Curve expected = train(config, cut);
  cut.open = fast_gpu;
  const Curve found = train(config, cut);
  EXPECT_EQ(difference(found, expected, within), "");
  EXPECT_NE(found.losses.front(), found.losses.back());
  EXPECT_TRUE(found.copies_agree);
  EXPECT_EQ(join(emulated::take_reports(), "; "), "");
}

TEST_P(OnTheGpu, steps_are_those_of_the_processor) {
  const auto& [name, cut] = GetParam();
  expect_the_processors(shape_of(name), cut, rounding);
}

INSTANTIATE_TEST_SUITE_P(Layouts, OnTheGpu,
                         ::testing::Combine(::testing::Values("gpt2", "llama", "oss"),
                                            ::testing::ValuesIn(cuts())),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" + name_of(std::get<1>(test.param));
                         });

// A chunk of steps costs the emulator as much as a whole one, however few there are: some layouts.
INSTANTIATE_TEST_SUITE_P(
    Others, OnTheGpu,
    ::testing::Combine(::testing::Values("delta", "hybrid", "gemma", "olmo", "neox", "command", "weighed",
                                         "capped", "chunks", "falling", "plus", "bare"),
                       ::testing::Values(cuts()[2], cuts()[5])),
    [](const auto& test) { return std::get<0>(test.param) + "_" + name_of(std::get<1>(test.param)); });

/// Two heads of 64 channels over sixteen tokens, so that attention runs by tiles where it is in half
/// precision.
ModelConfig with_wide_heads(Precision precision) {
  ModelConfig config = shape_of("gpt2");
  config.hidden = config.channels = 64;
  config.heads = config.groups = 2;
  config.ffn_hidden = 128;
  config.sequence = config.max_positions = 16;
  config.precision = precision;
  return config;
}

// In half precision every product is rounded on its way, as it is where ranks add in another order:
// rounding_of says how far that parts.
TEST(StepsOnTheGpu, wide_heads_are_those_of_the_processor_in_every_precision) {
  for (const Precision precision : {Precision::f32, Precision::bf16, Precision::f16}) {
    const ModelConfig config = with_wide_heads(precision);
    for (const Cut& cut : {Cut{{.dp = 1}, 4}, {{.tp = 2, .dp = 1, .sequence = true}, 4}}) {
      SCOPED_TRACE(text(words(precision)[std::size_t(precision)], " ", name_of(cut)));
      expect_the_processors(config, cut, precision == Precision::f32 ? rounding : rounding_of(config, cut));
    }
  }
}

TEST(StepsOnTheGpu, residual_streams_in_f32_are_those_of_the_processor) {
  for (const char* name : {"gpt2", "olmo"})
    for (const double dropout : {0.0, 0.1}) {
      SCOPED_TRACE(text(name, " ", dropout));
      ModelConfig config = shape_of(name);
      config.precision = Precision::bf16;
      config.residual_in_f32 = true;
      config.hidden_dropout = dropout;
      const Cut cut{{.tp = 2, .dp = 1, .sequence = true}, 4};
      expect_the_processors(config, cut, rounding_of(config, cut));
    }
}

// Experts, latents, and masks of encoders and of two stacks.
TEST(StepsOnTheGpu, other_families_and_layers_are_those_of_the_processor) {
  for (const char* name : {"mixture", "latent", "bert", "t5"}) {
    SCOPED_TRACE(name);
    expect_the_processors(shape_of(name), {{.dp = 1}, 4}, rounding);
  }
  expect_the_processors(shape_of("bert"), {{.cp = 2, .dp = 1}, 4}, rounding);
  expect_the_processors(shape_of("mixture"), {{.dp = 2, .ep = 2, .zero = 1}, 1}, rounding);
  ModelConfig in_doubles = shape_of("mixture");
  in_doubles.experts.router.precision = RouterPrecision::f64;
  expect_the_processors(in_doubles, {{.tp = 2, .dp = 1, .sequence = true}, 4}, rounding);
}

// In half precision the host does not learn how many rows there are: behind those that are kept stand zeros.
TEST(StepsOnTheGpu, experts_with_room_for_some_are_those_of_the_processor) {
  for (const Precision precision : {Precision::bf16, Precision::f16})
    for (const double capacity : {0.5, 1.5}) {
      SCOPED_TRACE(text(words(precision)[std::size_t(precision)], ", ", capacity));
      ModelConfig config = shape_of("mixture");
      config.precision = precision;
      config.linear_bias = true;
      config.experts.router.capacity = capacity;
      config.experts.router.drop = DropPolicy::position;
      const Cut cut{{.dp = 1}, 4};
      expect_the_processors(config, cut, rounding_of(config, cut));
    }
}

// Of experts that are filled up the host knows how many rows they have, in every type and wherever these come
// from.
TEST(StepsOnTheGpu, experts_that_are_filled_up_are_those_of_the_processor) {
  for (const Precision precision : {Precision::f32, Precision::bf16})
    for (const ParallelConfig& parallel : {ParallelConfig{.dp = 1}, {.dp = 2, .ep = 2}}) {
      ModelConfig config = shape_of("mixture");
      config.precision = precision;
      config.linear_bias = true;
      config.experts.router.capacity = 0.8;
      config.experts.router.filled = true;
      config.experts.router.drop = DropPolicy::position;
      const Cut cut{parallel, parallel.dp > 1 ? 2 : 4};
      SCOPED_TRACE(text(words(precision)[std::size_t(precision)], ", ", name_of(cut)));
      expect_the_processors(config, cut, rounding_of(config, cut));
    }
}

// A last bit of a sum may put an element on the other side of a tie of eight bits: 2^-4 of itself. Tensor
// cores of an H100 keep fewer bits of a sum of eight-bit products than f32 has: losses of the first step part
// by 2.5e-3 there, and by up to 1.7e-2 two steps later.
TEST(StepsOnTheGpu, products_in_eight_bits_are_those_of_the_processor) {
  for (const Fp8Recipe recipe : {Fp8Recipe::delayed, Fp8Recipe::tensorwise})
    for (const char* name : {"gpt2", "mixture"}) {
      SCOPED_TRACE(text(name, " ", words(recipe)[std::size_t(recipe)]));
      ModelConfig config = shape_of(name);
      config.fp8 = {.format = Fp8Format::hybrid, .recipe = recipe};
      constexpr Rounding within{.loss = gpu::real ? 4e-2 : 2e-3, .norm = gpu::real ? 1e-1 : 1e-2};
      expect_the_processors(config, {{.dp = 1}, 4}, within);
      expect_the_processors(config, {{.tp = 2, .dp = 1, .sequence = true}, 4}, within);
    }
}

// A query a warp in f32, and by tiles: heads of 64 channels, and latent ones.
TEST(StepsOnTheGpu, weights_follow_the_greatest_scores_as_on_the_processor) {
  for (const char* name : {"llama", "latent"})
    for (const Precision precision : {Precision::f32, Precision::bf16}) {
      SCOPED_TRACE(text(name, " ", int(precision)));
      ModelConfig config = shape_of(name, 2);
      config.precision = precision;
      Cut cut{{.cp = 2, .dp = 1}, 4};
      cut.optimizer.qk_clip = {.on = true, .threshold = 0.02};
      constexpr Rounding halves{.loss = 1e-2, .norm = 5e-2};
      expect_the_processors(config, cut, precision == Precision::f32 ? rounding : halves);
    }
}

// In eight bits where the GPU's library knows such scales, and elsewhere in bf16.
TEST(StepsOnTheGpu, products_by_blocks_are_those_of_the_processor) {
  for (const Fp8Recipe recipe : {Fp8Recipe::blockwise, Fp8Recipe::mxfp8})
    for (const char* name : {"gpt2", "mixture"}) {
      SCOPED_TRACE(text(name, " ", words(recipe)[std::size_t(recipe)]));
      ModelConfig config = shape_of(name);
      config.fp8 = {.format = Fp8Format::e4m3, .recipe = recipe};
      constexpr Rounding within{.loss = gpu::real ? 4e-2 : 2e-3, .norm = gpu::real ? 1e-1 : 1e-2};
      expect_the_processors(config, {{.tp = 2, .dp = 1, .sequence = true}, 4}, within);
    }
}

TEST(StepsOnTheGpu, every_optimizer_steps_as_on_the_processor) {
  for (const OptimizerKind kind :
       {OptimizerKind::sgd, OptimizerKind::muon, OptimizerKind::lion, OptimizerKind::lamb,
        OptimizerKind::onebitadam, OptimizerKind::zerooneadam, OptimizerKind::onebitlamb}) {
    SCOPED_TRACE(words(kind)[std::size_t(kind)]);
    Cut cut{{.dp = 2}, 4};
    cut.optimizer.kind = kind;
    // Muon's directions are made of products in bf16, whose last bits follow from the order of sums.
    expect_the_processors(shape_of("gpt2"), cut, kind == OptimizerKind::muon ? of_muon : rounding);
  }
}

}  // namespace
