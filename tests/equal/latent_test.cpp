// Latent attention under every kind of cut: heads are cut, latents are whole, and the key that heads share
// has a gradient from all of them.
#include <gtest/gtest.h>

#include "tests/equal/few_steps.h"

using namespace weft;
using namespace weft::testing;

namespace {

std::vector<Cut> cuts() {
  return {{{.tp = 2, .dp = 1}},
          {{.tp = 4, .dp = 1, .sequence = true}},
          {{.cp = 2, .dp = 1}},
          {{.cp = 2, .dp = 1, .context = ContextForm::gather}},
          {{.cp = 4, .dp = 1, .context = ContextForm::two_levels, .context_levels = {2, 2}}},
          {{.pp = 2, .dp = 1, .schedule = "zb-h1"}},
          {{.tp = 2, .pp = 2, .cp = 2, .dp = 2, .sequence = true}, 1},
          {{.tp = 2, .cp = 2, .dp = 2, .sequence = true, .zero = 3}, 1}};
}

/// Of these some, where a sanitizer waits.
std::vector<Cut> some_cuts() { return some_of(cuts(), 3); }

ModelConfig latent(bool of_queries) {
  ModelConfig config = shape_of("latent", 2);
  if (!of_queries) config.latent.query_rank = 0;
  return config;
}

std::string with_fault(Fault fault, bool sequence) {
  const ModelConfig config = latent(true);
  Cut cut = with_few_steps({{.tp = 2, .dp = 1, .sequence = sequence}});
  cut.fault = fault;
  return difference(train(config, cut), alone(config), rounding_of(config, cut));
}

}  // namespace

TEST(LatentAttention, trains_as_on_one_rank) {
  const ModelConfig config = latent(true);
  expect_steps_of_one_rank(config, some_cuts());
}

TEST(LatentAttention, trains_as_on_one_rank_where_queries_have_no_latent) {
  const ModelConfig config = latent(false);
  expect_steps_of_one_rank(config, {cuts()[0], cuts()[1], cuts()[6]});
}

TEST(LatentAttention, has_the_bits_of_one_rank_in_exact_mode) {
  const ModelConfig config = latent(true);
  expect_bits_of_one_rank(config, some_cuts());
}

TEST(LatentAttention, holds_what_the_counting_device_counts) {
  ModelConfig config = latent(true);
  expect_counted_memory(config, {cuts()[1], cuts()[4], cuts()[6]});
  config.recompute = {.what = Recompute::selective, .modules = {RecomputeModule::latent_heads}};
  EXPECT_EQ(memory_difference(config, cuts()[6]), "");
}

TEST(LatentAttention, shows_planted_faults) {
  EXPECT_EQ(with_fault(Fault::none, true), "");
  EXPECT_NE(with_fault(Fault::sequence_parts_not_added, true), "");
  EXPECT_NE(with_fault(Fault::norm_counts_ranks, false), "");  // where all hold whole sequences
  EXPECT_NE(with_fault(Fault::weight_gradient_dropped, true), "");
}
