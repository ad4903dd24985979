// What a device that only counts says of a GPU's memory is what steps hold there, byte by byte. What words
// between ranks hold is in tests/plan/gpu_plan_test.cpp.
#include <gtest/gtest.h>
#include <runtime.h>

#include "tests/equal/gpus.h"
#include "tests/equal/run.h"
#include "tests/support/gpu/emulated.h"
#include "weft/base/format.h"

using namespace weft;
using namespace weft::testing;

namespace {

struct Case {
  const char* name;
  Precision precision;
  std::int64_t channels = 0;  // where they are not the family's
  double capacity = 0;        // of experts, which then have biases, too
  bool filled = false;        // up to it
  bool residual_in_f32 = false;
};

std::vector<Case> cases() {
  using enum Precision;
  return {{"gpt2", f32},
          {"gpt2", bf16, 64},
          {"llama", bf16},
          {"llama", f16, 128},
          {"latent", bf16},
          {"mixture", f32},
          {"mixture", bf16},
          {"mixture", f32, 0, 0.5},
          {"mixture", bf16, 0, 0.5},
          {"delta", f32},
          {"hybrid", bf16},
          {"gemma", bf16},
          {"olmo", f32},
          {"capped", bf16},
          {"chunks", f32},
          {"neox", f32},
          {"command", bf16},
          {"plus", bf16},
          {"bare", bf16},
          {"weighed", bf16},
          {"mixture", f32, 0, 1, true},
          {"mixture", bf16, 0, 1, true},
          {"bert", bf16, 64},
          {"gpt2", bf16, 0, 0, false, true},
          {"olmo", bf16, 0, 0, false, true},
          {"t5", f32},
          {"t5", bf16, 64}};
}

/// "" where it is the same, on GPUs of this compute capability.
std::string parted(const Case& c, bool exact, int capability) {
  const emulated::CardsHere cards({.capability = capability});
  ModelConfig config = shape_of(c.name);
  config.precision = c.precision;
  config.residual_in_f32 = c.residual_in_f32;
  if (c.channels > 0) config.channels = c.channels;
  if (c.capacity > 0) {
    config.experts.router.capacity = c.capacity;
    config.experts.router.filled = c.filled;
    config.linear_bias = true;
  }
  complete(config);
  Cut cut{.parallel = {.dp = 1}};
  cut.samples = 4;  // of two microbatches, the second of which finds what the first has left
  cut.exact = exact;
  cut.open = exact ? exact_gpu : fast_gpu;
  cut.counts_for = gpus_here().all.at(0);
  if (config.experts.count > 0 && !c.filled) cut.always = {0, 2, 5};
  const emulated::Idle idle;  // nothing is held because of what comes out
  return memory_difference(config, cut);
}

// Compute capability 9 has kernels of its own for numbers of sixteen bits.
TEST(MemoryOfTheGpu, is_what_is_counted) {
  for (const Case& c : cases())
    EXPECT_EQ(parted(c, false, c.precision == Precision::f32 ? 8 : 9), "") << c.name;
}

TEST(MemoryOfTheGpu, is_what_is_counted_of_sixteen_bits_on_older_ones) {
  using enum Precision;
  for (const Case& c : {Case{"gpt2", bf16, 64},
                        {"llama", f16, 128},
                        {"mixture", bf16, 0, 0.5},
                        {"hybrid", bf16},
                        {"t5", bf16, 64}})
    EXPECT_EQ(parted(c, false, 8), "") << c.name;
}

TEST(MemoryOfTheGpu, is_what_is_counted_in_exact_mode) {
  for (const Case& c : cases()) {
    if (c.filled) continue;
    EXPECT_EQ(parted(c, true, 8), "") << c.name;
  }
}

}  // namespace
