// Steps whose launches the GPU keeps as graphs: the bits of steps that launch one by one, by fewer calls.
#include <gtest/gtest.h>
#include <runtime.h>

#include "tests/equal/run.h"
#include "tests/support/gpu/emulated.h"
#include "weft/backend/cuda/device.h"
#include "weft/base/format.h"

using namespace weft;
using namespace weft::testing;

namespace {

std::unique_ptr<Device> one_by_one() { return std::make_unique<CudaDevice>(); }
std::unique_ptr<Device> by_graphs() { return std::make_unique<CudaDevice>(CudaOptions{.graphs = true}); }

Cut steps_of(int steps, std::unique_ptr<Device> (*open)()) {
  Cut cut{{.dp = 1}, 2};
  cut.steps = steps;
  cut.open = open;
  return cut;
}

/// Calls by which the host has a step done, once graphs are known: of one step more.
std::int64_t calls_of_a_step(const ModelConfig& config, std::unique_ptr<Device> (*open)()) {
  const auto calls_of = [&](int steps) {
    const std::uint64_t before = emulated::meter().asked;
    train(config, steps_of(steps, open));
    return std::int64_t(emulated::meter().asked - before);
  };
  return calls_of(7) - calls_of(6);
}

void expect_the_same_bits(const ModelConfig& config, Cut cut) {
  cut.open = one_by_one;
  const Curve expected = train(config, cut);
  cut.open = by_graphs;
  EXPECT_EQ(train(config, cut), expected);
  EXPECT_EQ(join(emulated::take_reports(), "; "), "");
}

TEST(GraphsOfTheGpu, give_the_bits_of_launches_one_by_one_in_every_family) {
  emulated::set_pace(5);
  for (const char* name : {"llama", "latent", "mixture", "bert", "t5"}) {
    SCOPED_TRACE(name);
    expect_the_same_bits(shape_of(name), steps_of(4, by_graphs));
  }
}

// As late as may be, at once, and in a shuffled order.
TEST(GraphsOfTheGpu, give_them_whenever_the_gpu_works) {
  for (const unsigned pace : {0U, 1U, 6U}) {
    SCOPED_TRACE(pace);
    emulated::set_pace(pace);
    expect_the_same_bits(shape_of("gpt2"), steps_of(4, by_graphs));
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
  expect_the_same_bits(config, steps_of(3, by_graphs));
}

// What differs from one microbatch to the next is set anew: who drops, how far weights go, and here and there
// an address. Copies to and from the GPU are calls of their own.
TEST(GraphsOfTheGpu, ask_the_runtime_for_a_third_as_much) {
  for (const char* name : {"gpt2", "bert"})
    EXPECT_LT(3 * calls_of_a_step(shape_of(name), by_graphs), calls_of_a_step(shape_of(name), one_by_one))
        << name;
}

TEST(GraphsOfTheGpu, set_next_to_nothing_anew_where_nothing_is_dropped) {
  ModelConfig config = shape_of("gpt2");
  config.hidden_dropout = config.attention_dropout = 0;
  EXPECT_LT(5 * calls_of_a_step(config, by_graphs), calls_of_a_step(config, one_by_one));
}

}  // namespace
