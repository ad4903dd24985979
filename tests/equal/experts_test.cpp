// Mixtures of experts under every layout: experts shared out, shared among ranks, and tokens that travel.
#include <gtest/gtest.h>

#include <map>

#include "tests/equal/run.h"
#include "tests/support/sanitized.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr int few = rounds(3);

ModelConfig mixture(int layers = 2) { return shape_of("mixture", layers); }

/// With the same microbatches, as balancing losses look at one each.
Cut one_rank(const Cut& cut) {
  return {.parallel = {.dp = 1}, .micro_batch = cut.micro_batch, .steps = cut.steps, .exact = cut.exact};
}

/// Every layout is held against the same few runs.
const Curve& alone(int layers, bool exact) {
  static std::map<std::pair<int, bool>, Curve> known;
  Curve& curve = known[{layers, exact}];
  if (curve.losses.empty())
    curve = train(mixture(layers), one_rank({.micro_batch = 2, .steps = few, .exact = exact}));
  return curve;
}

int layers_of(const ParallelConfig& parallel) { return parallel.pp > 1 ? 4 : 2; }

std::vector<ParallelConfig> layouts() {
  return {{.dp = 2, .ep = 2},
          {.dp = 4, .ep = 2},
          {.dp = 4, .ep = 4, .zero = 1},
          {.tp = 2, .dp = 1},
          {.tp = 2, .dp = 1, .ep = 2, .etp = 1},
          {.tp = 2, .dp = 1, .ep = 2, .etp = 1, .sequence = true},
          {.tp = 2, .dp = 2, .ep = 2, .sequence = true},
          {.tp = 2, .dp = 2, .ep = 4, .etp = 1, .sequence = true, .zero = 1},
          {.tp = 4, .dp = 1, .ep = 2, .etp = 2},
          {.tp = 4, .dp = 1, .ep = 2, .etp = 1, .sequence = true},
          {.cp = 2, .dp = 1, .ep = 2},
          {.cp = 2, .dp = 2, .ep = 2},
          {.cp = 2, .dp = 2, .ep = 4},
          {.tp = 2, .cp = 2, .dp = 1, .ep = 4, .etp = 1, .sequence = true},
          {.tp = 2, .cp = 2, .dp = 2, .ep = 2, .etp = 2, .sequence = true},
          {.tp = 2, .pp = 2, .cp = 2, .dp = 2, .ep = 4, .etp = 1, .sequence = true, .zero = 1},
          {.pp = 2, .dp = 2, .ep = 2},
          {.pp = 2, .dp = 2, .ep = 2, .schedule = "zb-h1"},
          {.pp = 2, .dp = 2, .ep = 2, .schedule = "zb-v", .virtual_stages = 2},
          {.pp = 2, .dp = 2, .ep = 2, .virtual_stages = 2},
          {.dp = 2, .ep = 2, .zero = 2},
          {.dp = 4, .ep = 2, .zero = 3}};
}

std::string name_of_layout(const ::testing::TestParamInfo<ParallelConfig>& info) {
  return name_of({.parallel = info.param});
}

class Experts : public ::testing::TestWithParam<ParallelConfig> {};

/// But for rounding, and in exact mode to the bit.
void expect_one_rank(const ModelConfig& config, const std::vector<ParallelConfig>& layouts) {
  for (const bool exact : {false, true}) {
    const Curve one = train(config, one_rank({.micro_batch = 2, .steps = few, .exact = exact}));
    for (const ParallelConfig& parallel : some_of(layouts, 4)) {
      const Cut cut{.parallel = parallel, .micro_batch = 2, .steps = few, .exact = exact};
      EXPECT_EQ(difference(train(config, cut), one, rounding_of(config, cut)), "") << name_of(cut) << exact;
    }
  }
}

}  // namespace

TEST_P(Experts, learn_as_on_one_rank) {
  const int layers = layers_of(GetParam());
  const Cut cut{.parallel = GetParam(), .micro_batch = 2, .steps = few};
  EXPECT_EQ(difference(train(mixture(layers), cut), alone(layers, false)), "");
}

TEST_P(Experts, give_the_same_bits_in_exact_mode) {
  const int layers = layers_of(GetParam());
  const Cut cut{.parallel = GetParam(), .micro_batch = 2, .steps = few, .exact = true};
  const Curve &one = alone(layers, true), many = train(mixture(layers), cut);
  EXPECT_EQ(many.losses, one.losses);
  EXPECT_EQ(many.norms, one.norms);
  EXPECT_EQ(many.evaluations, one.evaluations);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Experts, ::testing::ValuesIn(layouts()), name_of_layout);

TEST(ExpertsChosenInDoubles, learn_as_on_one_rank) {
  ModelConfig config = mixture();
  config.experts.router.precision = RouterPrecision::f64;
  for (const bool exact : {false, true}) {
    const Curve one = train(config, one_rank({.micro_batch = 2, .steps = few, .exact = exact}));
    EXPECT_NE(one.norms, alone(2, exact).norms);
    const std::vector<ParallelConfig> layouts{
        {.dp = 2, .ep = 2},
        {.tp = 2, .dp = 1, .ep = 2, .etp = 1},
        {.tp = 2, .cp = 2, .dp = 2, .ep = 4, .etp = 1, .sequence = true, .zero = 1}};
    for (const ParallelConfig& parallel : some_of(layouts, 3)) {
      const Cut cut{.parallel = parallel, .micro_batch = 2, .steps = few, .exact = exact};
      const Curve many = train(config, cut);
      EXPECT_EQ(difference(many, one, rounding_of(config, cut)), "") << name_of(cut) << exact;
      if (!exact) continue;
      EXPECT_EQ(many.losses, one.losses) << name_of(cut);
      EXPECT_EQ(many.norms, one.norms) << name_of(cut);
    }
    const Cut counted{.parallel = {.dp = 2, .ep = 2}, .micro_batch = 2, .exact = exact, .always = {0, 2, 5}};
    EXPECT_EQ(memory_difference(config, counted), "") << exact;
  }
}

// The gate is whole on every rank, and the MLP cut as others are.
TEST(ExpertsBesideAnMlp, learn_as_on_one_rank) {
  ModelConfig config = mixture();
  config.experts.shared_hidden = 0;
  config.experts.shared_gate = false;
  config.experts.residual = true;
  expect_one_rank(config, {{.tp = 2, .dp = 1, .ep = 2, .etp = 1},
                           {.tp = 2, .cp = 2, .dp = 2, .ep = 4, .etp = 1, .sequence = true, .zero = 1}});
}

// The ways to their channels and back are whole on every rank, which sees some of a sequence's tokens.
TEST(ExpertsOnFewerChannels, learn_as_on_one_rank) {
  ModelConfig config = mixture();
  config.experts.latent = 12;
  expect_one_rank(config, {{.dp = 2, .ep = 2},
                           {.tp = 2, .dp = 1, .ep = 2, .etp = 1, .sequence = true},
                           {.tp = 2, .dp = 2, .ep = 2, .etp = 2},
                           {.cp = 2, .dp = 1, .ep = 2},
                           {.tp = 2, .cp = 2, .dp = 2, .ep = 4, .etp = 1, .sequence = true, .zero = 1}});
}

// Exact mode's leaves are sequences: what looks at a microbatch's tokens looks at one sequence's there, which
// is what Megatron defines for micro batches of one sample, and no longer what it defines for those of two.
TEST(ExactExperts, are_balanced_as_in_micro_batches_of_one_sequence) {
  ModelConfig config = mixture();
  config.experts.router.balancing = {Balancing::aux_loss};
  config.experts.router.coefficients = {0.5};
  config.experts.router.capacity = 0.8;
  const auto with = [&](std::int64_t micro, bool exact) {
    return train(config, {.parallel = {.dp = 1}, .micro_batch = micro, .steps = few, .exact = exact});
  };
  const Curve ones = with(1, true), twos = with(2, true);
  EXPECT_EQ(twos.losses, ones.losses);
  EXPECT_EQ(twos.norms, ones.norms);
  EXPECT_EQ(difference(with(1, false), ones), "");
  EXPECT_NE(difference(with(2, false), ones), "");
}

// Of routers and of experts, which no two ranks share then.
TEST(ExpertsWithBiases, learn_as_on_one_rank) {
  ModelConfig config = mixture();
  config.linear_bias = true;
  expect_one_rank(config, {{.dp = 2, .ep = 2},
                           {.tp = 2, .dp = 1, .ep = 1, .etp = 1},
                           {.tp = 2, .dp = 1, .ep = 2, .etp = 1, .sequence = true},
                           {.cp = 2, .dp = 1, .ep = 2},
                           {.tp = 2, .cp = 2, .dp = 2, .ep = 4, .etp = 1, .sequence = true, .zero = 1}});
}

/// With room for some of the rows, or for more than there are.
ModelConfig with_room(double capacity, bool filled) {
  ModelConfig config = mixture();
  config.linear_bias = true;
  config.experts.router.capacity = capacity;
  config.experts.router.drop = DropPolicy::position;
  config.experts.router.filled = filled;
  return config;
}

// Rows of nobody change no number, wherever they go. Of a room that is shared nobody knows what others leave.
TEST(ExpertsFilledUp, learn_as_those_that_are_not) {
  const std::vector<ParallelConfig> layouts{{.dp = 1},
                                            {.dp = 2, .ep = 2},
                                            {.dp = 4, .ep = 4, .zero = 1},
                                            {.dp = 4, .ep = 2, .zero = 3},
                                            {.dp = 4, .ep = 2, .etp = 2},
                                            {.tp = 2, .dp = 2, .ep = 2, .etp = 1, .sequence = true},
                                            {.cp = 2, .dp = 1, .ep = 2}};
  for (const double capacity : {0.5, 1.0, 100.0})
    for (const ParallelConfig& parallel : some_of(layouts, 3)) {
      const Cut cut{.parallel = parallel, .micro_batch = 2, .steps = few};
      const Curve plain = train(with_room(capacity, false), cut);
      EXPECT_EQ(difference(train(with_room(capacity, true), cut), plain), "") << name_of(cut) << capacity;
    }
  const Cut exact{.parallel = {.dp = 2, .ep = 2}, .micro_batch = 2, .steps = few, .exact = true};
  EXPECT_EQ(train(with_room(0.5, true), exact).norms, train(with_room(0.5, false), exact).norms);
}

// No router decides how much is held.
TEST(ExpertsFilledUp, hold_what_the_counting_device_counts_whoever_is_chosen) {
  for (const ParallelConfig& parallel : std::vector<ParallelConfig>{
           {.dp = 1}, {.dp = 2, .ep = 2}, {.dp = 4, .ep = 2, .zero = 1}, {.dp = 4, .ep = 4}})
    for (const double capacity : {0.5, 100.0}) {
      const Cut cut{.parallel = parallel, .micro_batch = 2};
      EXPECT_EQ(memory_difference(with_room(capacity, true), cut), "") << name_of(cut) << capacity;
    }
}

// A loss that looks at the microbatches so far sees what it saw, although others came before its backward.
TEST(ExpertsBalancedOverAStep, learn_the_same_where_layers_are_computed_again) {
  ModelConfig config = mixture(4);
  config.experts.router.balancing = {Balancing::global_aux_loss};
  config.experts.router.coefficients = {0.5};
  for (const int pp : {1, 2}) {
    const Cut cut{.parallel = {.pp = pp, .dp = 1}, .micro_batch = 2, .steps = few};
    config.recompute = {};
    const Curve kept = train(config, cut);
    for (const RecomputeConfig& recompute :
         {RecomputeConfig{.what = Recompute::full, .layers = 1},
          {.what = Recompute::selective, .modules = {RecomputeModule::experts}}}) {
      config.recompute = recompute;
      const Curve again = train(config, cut);
      EXPECT_EQ(again.losses, kept.losses) << pp;
      EXPECT_EQ(again.norms, kept.norms) << pp;
    }
  }
}

// How many rows go where is the routers' affair; given that, memory is arithmetic.
TEST(ExpertMemory, is_what_the_counting_device_counts_for_the_same_loads) {
  const std::vector<ParallelConfig> layouts{{.dp = 2, .ep = 2},
                                            {.dp = 4, .ep = 2},
                                            {.tp = 2, .dp = 2, .ep = 4, .etp = 1, .sequence = true},
                                            {.tp = 4, .dp = 1, .ep = 2, .etp = 2},
                                            {.cp = 2, .dp = 2, .ep = 2},
                                            {.pp = 2, .dp = 2, .ep = 2, .zero = 1}};
  for (const ParallelConfig& parallel : layouts)
    for (const bool exact : {false, true}) {
      const Cut cut{.parallel = parallel, .micro_batch = 2, .exact = exact, .always = {0, 2, 5}};
      EXPECT_EQ(memory_difference(mixture(layers_of(parallel)), cut), "") << name_of(cut) << exact;
    }
}

// At home, so that ranks that share an expert, or its rows, never see a weight.
TEST(WeighedRows, train_as_on_one_rank) {
  expect_one_rank(shape_of("weighed"), {{.tp = 2, .dp = 1},
                                        {.tp = 4, .dp = 1, .ep = 2, .etp = 2, .sequence = true},
                                        {.dp = 4, .ep = 4, .zero = 1},
                                        {.pp = 2, .dp = 2, .ep = 2, .schedule = "zb-h1"},
                                        {.tp = 2, .cp = 2, .dp = 2, .ep = 4, .etp = 1, .sequence = true}});
}

TEST(WeighedRows, are_what_experts_read) {
  ModelConfig config = shape_of("weighed");
  const Cut cut = one_rank({.micro_batch = 2, .steps = few});
  const Curve before = train(config, cut);
  config.experts.weigh_input = false;
  EXPECT_NE(before.losses, train(config, cut).losses);
}

TEST(WeighedRows, hold_what_the_counting_device_counts) {
  for (const bool exact : {false, true}) {
    const Cut cut{.parallel = {.tp = 2, .dp = 2, .ep = 4, .etp = 1, .sequence = true},
                  .micro_batch = 2,
                  .exact = exact,
                  .always = {0, 2, 5}};
    EXPECT_EQ(memory_difference(shape_of("weighed"), cut), "") << exact;
  }
}

TEST(ExpertFaults, are_all_seen_and_none_where_none_is) {
  const ModelConfig config = mixture();
  Cut cut{
      .parallel = {.tp = 2, .dp = 2, .ep = 2, .etp = 1, .sequence = true}, .micro_batch = 2, .steps = few};
  const Curve one = train(config, one_rank(cut));
  const auto seen = [&](Fault fault) {
    cut.fault = fault;
    return difference(train(config, cut), one);
  };
  EXPECT_EQ(seen(Fault::none), "");
  for (const Fault fault :
       {Fault::experts_taken_for_copies, Fault::router_terms_not_added, Fault::experts_learn_nothing})
    EXPECT_NE(seen(fault), "") << "fault " << int(fault);
}
