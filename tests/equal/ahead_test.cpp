// Tokens beyond the next one under every kind of cut: their words are a copy on the last stage, and a
// sequence that is cut ends where the whole one does.
#include <gtest/gtest.h>

#include <map>

#include "tests/equal/run.h"
#include "tests/support/sanitized.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr int few = rounds(4);

std::vector<Cut> cuts() {
  return {{{.tp = 2, .dp = 1, .sequence = true}},
          {{.cp = 2, .dp = 1}},
          {{.cp = 4, .dp = 1, .context = ContextForm::gather}},
          {{.pp = 2, .dp = 1}},
          {{.pp = 2, .dp = 1, .schedule = "zb-v", .virtual_stages = 2}},
          {{.dp = 4, .zero = 3}, 1},
          {{.tp = 2, .pp = 2, .cp = 2, .dp = 2, .sequence = true}, 1}};
}

Cut with_steps(Cut cut, bool exact) {
  cut.steps = few;
  cut.exact = exact;
  cut.uneven = cut.parallel.dp == 1;  // what counts of a microbatch and of its further tokens differs
  return cut;
}

/// A microbatch's mean is over its own tokens, so the same samples stand in one.
Curve alone(const ModelConfig& config, const Cut& cut) {
  Cut one = with_steps({.parallel = {.dp = 1}, .micro_batch = cut.micro_batch}, cut.exact);
  one.uneven = cut.uneven;
  return train(config, one);
}

/// visit(cut, how it trains, how one rank does); where a sanitizer waits, of some cuts.
template <class Visit>
void each_cut(const ModelConfig& config, bool exact, const Visit& visit) {
  std::map<std::pair<std::int64_t, bool>, Curve> ones;
  for (const Cut& some : some_of(cuts(), 3)) {
    const Cut cut = with_steps(some, exact);
    const auto [one, fresh] = ones.try_emplace({cut.micro_batch, cut.uneven});
    if (fresh) one->second = alone(config, cut);
    visit(cut, train(config, cut), one->second);
  }
}

ModelConfig guessing(const std::string& name, int layers = 4) {
  ModelConfig config = shape_of(name, layers);
  config.ahead = {.depths = 2, .factor = 0.5};
  return config;
}

std::string with_fault(Fault fault, bool tied) {
  ModelConfig config = guessing("gpt2", 2);
  config.tied_output = tied;
  Cut cut = with_steps({{.tp = 2, .pp = 2, .dp = 1, .sequence = true}}, false);
  const Curve one = alone(config, cut);
  cut.fault = fault;
  return difference(train(config, cut), one, rounding_of(config, cut));
}

}  // namespace

TEST(FurtherTokens, are_learned_as_on_one_rank) {
  for (const char* name : {"gpt2", "llama"}) {
    each_cut(guessing(name), false, [&](const Cut& cut, const Curve& many, const Curve& one) {
      EXPECT_EQ(difference(many, one), "") << name << " " << name_of(cut);
      EXPECT_EQ(one.losses.size(), std::size_t(3 * few));
    });
  }
}

TEST(FurtherTokens, have_the_bits_of_one_rank_in_exact_mode) {
  for (const char* name : {"gpt2", "llama"}) {
    each_cut(guessing(name), true, [&](const Cut& cut, const Curve& many, const Curve& one) {
      EXPECT_EQ(many.losses, one.losses) << name << " " << name_of(cut);
      EXPECT_EQ(many.norms, one.norms) << name << " " << name_of(cut);
    });
  }
}

// A depth's layer has experts as the last one has, and routers of its own.
TEST(FurtherTokens, of_experts_are_learned_as_on_one_rank) {
  for (const bool exact : {false, true})
    for (const ParallelConfig& parallel :
         {ParallelConfig{.dp = 2, .ep = 2},
          {.tp = 2, .pp = 2, .dp = 2, .ep = 4, .etp = 1, .sequence = true}}) {
      const Cut cut = with_steps({.parallel = parallel}, exact);
      const ModelConfig config = guessing("mixture", 2);
      const Curve one = alone(config, cut), many = train(config, cut);
      EXPECT_EQ(difference(many, one, rounding_of(config, cut)), "")
          << name_of(cut) << (exact ? " exact" : "");
    }
}

TEST(FurtherTokens, through_one_layer_are_learned_as_on_one_rank) {
  for (const bool exact : {false, true}) {
    ModelConfig config = guessing("llama");
    config.ahead = {.depths = 3, .repeated = true, .factor = 0.5};
    config.recompute = {.what = exact ? Recompute::none : Recompute::full};
    each_cut(config, exact, [&](const Cut& cut, const Curve& many, const Curve& one) {
      EXPECT_EQ(difference(many, one, rounding_of(config, cut)), "")
          << name_of(cut) << (exact ? " exact" : "");
    });
  }
}

// One router chooses in every round, and what balances it is a mean over them.
TEST(FurtherTokens, through_one_layer_of_experts_are_learned_as_on_one_rank) {
  ModelConfig config = guessing("mixture", 2);
  config.ahead.repeated = true;
  const Cut cut = with_steps({{.tp = 2, .pp = 2, .dp = 2, .ep = 4, .etp = 1, .sequence = true}}, false);
  EXPECT_EQ(difference(train(config, cut), alone(config, cut)), "");
  ModelConfig apart = config;
  apart.ahead.repeated = false;
  EXPECT_NE(difference(alone(config, cut), alone(apart, cut)), "");
}

TEST(FurtherTokens, hold_what_the_counting_device_counts) {
  ModelConfig config = guessing("gpt2");
  for (const Cut& cut : {cuts()[0], cuts()[5], cuts()[6]})
    EXPECT_EQ(memory_difference(config, cut), "") << name_of(cut);
  config.recompute = {.what = Recompute::full};
  EXPECT_EQ(memory_difference(config, cuts()[3]), "");
}

TEST(FurtherTokens, weigh_as_much_as_their_factor_says) {
  ModelConfig config = guessing("llama", 2);
  const Cut cut = with_steps({.parallel = {.dp = 1}}, false);
  const Curve some = train(config, cut);
  config.ahead.factor = 0;
  const Curve none = train(config, cut);
  EXPECT_EQ(some.losses[0], none.losses[0]);
  EXPECT_EQ(some.losses[1], none.losses[1]);
  EXPECT_GT(some.norms[0], none.norms[0]);
}

TEST(FurtherTokens, show_planted_faults) {
  if (sanitized) GTEST_SKIP() << "what numbers show is for a plain build to see";
  for (const bool tied : {false, true}) {
    EXPECT_EQ(with_fault(Fault::none, tied), "");
    EXPECT_NE(with_fault(Fault::tied_copies_not_added, tied), "");
    EXPECT_NE(with_fault(Fault::norm_counts_copies, tied), "");
    EXPECT_NE(with_fault(Fault::sequence_parts_not_added, tied), "");
  }
}
