// Steps in eight bits by blocks, on GPUs whose library knows their scales: those of the processor, and of the
// memory that is counted. On others they are in gpu_test.cpp.
#include <gtest/gtest.h>
#include <runtime.h>

#include <utility>

#include "tests/equal/gpus.h"
#include "tests/equal/run.h"
#include "tests/support/gpu/emulated.h"
#include "weft/backend/gpus.h"
#include "weft/base/format.h"

using namespace weft;
using namespace weft::testing;

namespace {

ModelConfig by_blocks(const char* family, Fp8Recipe recipe, Precision precision = Precision::f32) {
  ModelConfig config = shape_of(family);
  config.precision = precision;
  config.fp8 = {.format = Fp8Format::hybrid, .recipe = recipe};
  return config;
}

// Codes are the same; products add in another order, so a later code may be the next one.
TEST(StepsByBlocks, are_those_of_the_processor) {
  for (const auto& [recipe, capability] :
       {std::pair{Fp8Recipe::blockwise, 9}, std::pair{Fp8Recipe::mxfp8, 10}})
    for (const auto& [family, cut] : {std::pair{"gpt2", Cut{{.tp = 2, .dp = 1, .sequence = true}, 4}},
                                      std::pair{"mixture", Cut{{.dp = 1}, 4}}}) {
      const emulated::CardsHere cards({.capability = capability});
      Cut on_gpu = cut;
      on_gpu.steps = 3;
      const Curve expected = train(by_blocks(family, recipe), on_gpu);
      on_gpu.open = fast_gpu;
      EXPECT_EQ(difference(train(by_blocks(family, recipe), on_gpu), expected, {.loss = 2e-3, .norm = 1e-2}),
                "")
          << family;
      EXPECT_EQ(join(emulated::take_reports(), "; "), "");
    }
}

TEST(StepsByBlocks, hold_what_is_counted) {
  const emulated::Idle idle;
  for (const Fp8Recipe recipe : {Fp8Recipe::blockwise, Fp8Recipe::mxfp8})
    for (const int capability : {8, 9, 10})
      for (const Precision precision : {Precision::bf16, Precision::f16}) {
        const emulated::CardsHere cards({.capability = capability});
        Cut cut{.parallel = {.dp = 1}};
        cut.open = fast_gpu;
        cut.counts_for = gpus_here().all.at(0);
        EXPECT_EQ(memory_difference(by_blocks("llama", recipe, precision), cut), "") << capability;
      }
}

}  // namespace
