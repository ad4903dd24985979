// Layers that are one thing each, state spaces among them, under every kind of cut: each rank has the
// memories of its own heads.
#include <gtest/gtest.h>

#include "tests/equal/few_steps.h"
#include "tests/support/tiny.h"

using namespace weft;
using namespace weft::testing;

namespace {

std::vector<Cut> cuts() {
  return {{{.tp = 2, .dp = 1}},
          {{.tp = 4, .dp = 1, .sequence = true}},
          {{.cp = 2, .dp = 1}},
          {{.cp = 4, .dp = 1, .context = ContextForm::two_levels, .context_levels = {2, 2}}},
          {{.tp = 2, .cp = 2, .dp = 1, .sequence = true, .context = ContextForm::gather}},
          {{.pp = 2, .dp = 1, .schedule = "zb-h1"}},
          {{.pp = 2, .dp = 1, .layout = "Ett|tttL"}, 4},
          {{.dp = 4, .zero = 1}, 1},
          {{.tp = 2, .pp = 2, .dp = 2, .sequence = true, .layout = "Ettt|ttL"}, 1},
          {{.tp = 2, .cp = 2, .dp = 2, .sequence = true, .zero = 3}, 1}};
}

/// Five layers, one of each kind but experts' and two state spaces.
ModelConfig hybrid(const std::string& letters = "M*-GM") {
  ModelConfig config = tiny_hybrid(letters);
  config.hidden_dropout = config.attention_dropout = 0.1;
  return config;
}

std::vector<Cut> of_even_stages(std::vector<Cut> all) {
  std::erase_if(all, [](const Cut& cut) { return cut.parallel.pp > 1 && cut.parallel.layout.empty(); });
  return all;
}
std::vector<Cut> some_cuts() { return some_of(of_even_stages(cuts()), 3); }

}  // namespace

TEST(State, trains_as_on_one_rank) { expect_steps_of_one_rank(hybrid(), some_cuts()); }

TEST(State, has_the_bits_of_one_rank_in_exact_mode) { expect_bits_of_one_rank(hybrid(), some_cuts()); }

TEST(State, trains_with_experts_as_on_one_rank) {
  ModelConfig config = hybrid("ME*E");
  config.experts.router.balancing = {Balancing::none};  // losses of a microbatch, and these have their own
  config.experts.router.coefficients = {0};
  config.experts.router.z_loss = 0;
  const Cut few = {{.tp = 2, .dp = 2, .ep = 4, .etp = 1, .sequence = true, .zero = 1}, 1};
  expect_steps_of_one_rank(config, {few, {{.pp = 2, .dp = 2, .ep = 2}, 1}});
}

/// Through "*-", a layer of attention and one of an MLP, each.
TEST(State, guesses_further_tokens_as_on_one_rank) {
  ModelConfig config = tiny_hybrid("M*M-");
  config.ahead = {.depths = 2, .factor = 0.5};
  config.hybrid.ahead = "*-";
  complete(config);
  expect_steps_of_one_rank(config, {{{.tp = 2, .dp = 1, .sequence = true}}, {{.pp = 2, .dp = 1}, 2}});
  const Curve both = alone(config);
  config.hybrid.ahead = "M";
  EXPECT_NE(alone(config).losses, both.losses);
}

TEST(State, holds_what_the_counting_device_counts) {
  expect_counted_memory(hybrid(), {cuts()[1], cuts()[3], cuts()[4], cuts()[8]});
}

TEST(State, shows_planted_faults) {
  const ModelConfig config = hybrid("M-");
  const Curve one = alone(config);
  for (const Fault fault : {Fault::sequence_parts_not_added, Fault::weight_gradient_dropped}) {
    Cut cut = with_few_steps({{.tp = 2, .dp = 1, .sequence = true}});
    cut.fault = fault;
    EXPECT_NE(difference(train(config, cut), one, rounding_of(config, cut)), "") << int(fault);
  }
}
