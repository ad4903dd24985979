// Whole runs whose steps leave layers out: no layout and no resume sees it, and evaluations know nothing of
// it.
#include "weft/nn/layer_drop.h"

#include "tests/support/few_experts.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary.h"
#include "tests/train/completing.h"
#include "tests/train/run_cut.h"
#include "tests/train/tiny_run.h"
#include "weft/model/count.h"

using namespace weft;
using namespace weft::testing;

namespace {

/// Six steps of four layers, of which half the steps from the third on leave some out.
TrainConfig dropping() {
  TrainConfig c = tiny_run();
  c.model.layers = 4;
  c.model.layer_drop = {.theta = 0, .gamma = 2};
  return c;
}

std::vector<int> kept(const TrainConfig& c) {
  std::vector<int> out;
  for (std::int64_t step = 1; step <= 6; ++step)
    out.push_back(layers_kept(c.model.layer_drop, std::uint64_t(c.run.seed), step, c.model.layers));
  return out;
}

TrainConfig in_layout(const RunCut& cut, TrainConfig c) {
  c.parallel.sequence = cut.tp > 1;
  c.parallel.overlap_reduce = cut.dp > 1;
  if (cut.pp > 1) c.parallel.schedule = "zb-h1";
  return cut_as(cut, c);
}

}  // namespace

TEST(LayerDropRun, leaves_layers_out_in_the_steps_that_these_tests_take) {
  const std::vector<int> steps = kept(dropping());
  EXPECT_EQ(steps[0], 4);
  EXPECT_EQ(steps[1], 4);
  EXPECT_LT(std::accumulate(steps.begin(), steps.end(), 0), 21);
  TrainConfig whole = dropping();
  whole.model.layer_drop = {};
  const Told told = train(completed(dropping())), usual = train(completed(whole));
  EXPECT_EQ(told.losses[1], usual.losses[1]);
  EXPECT_NE(told.losses, usual.losses);
}

// In exact mode every bit, whatever is cut: gradients that a bucket waits for in vain among them.
TEST(LayerDropRun, is_the_same_under_every_layout_to_the_bit) {
  const std::vector<RunCut> cuts{
      {.name = "tp2_dp2", .tp = 2, .dp = 2, .micro = 2, .exact = true},
      {.name = "pp2", .pp = 2, .micro = 2, .exact = true},
      {.name = "pp4_zero1", .dp = 2, .pp = 4, .micro = 1, .zero = 1, .exact = true},
      {.name = "cp2_zero2", .dp = 2, .micro = 4, .zero = 2, .cp = 2, .exact = true},
      {.name = "zero3", .dp = 4, .micro = 1, .zero = 3, .exact = true}};
  const Told one = train(cut_as({.name = "one", .exact = true}, dropping()));
  ASSERT_EQ(one.losses.size(), 6U);
  for (const RunCut& cut : some_of(cuts, 2)) {
    expect_same_bits(train(in_layout(cut, dropping())), one, cut.name);
  }
}

// Routers of a layer that is left out count nothing, and what is added to their scores stays.
TEST(LayerDropRun, is_the_same_with_experts_under_every_layout_to_the_bit) {
  TrainConfig base = dropping();
  base.model.linear_bias = false;
  base.model.experts.count = 4;
  base.model.experts.router = learning_router();
  base.model.experts.router.z_loss = 0.01;
  const Told one = train(cut_as({.name = "one", .exact = true}, base));
  ASSERT_EQ(one.losses.size(), 6U);
  const std::vector<RunCut> cuts{{.name = "tp2_ep2", .tp = 2, .dp = 2, .micro = 2, .exact = true},
                                 {.name = "pp2_ep2", .dp = 2, .pp = 2, .micro = 2, .zero = 1, .exact = true},
                                 {.name = "cp2", .micro = 4, .cp = 2, .exact = true}};
  for (const RunCut& cut : some_of(cuts, 2)) {
    TrainConfig c = base;
    c.parallel.ep = cut.dp;
    expect_same_bits(train(in_layout(cut, c)), one, cut.name);
  }
  expect_it_goes_on_to_the_bit(base);
}

TEST(LayerDropRun, is_the_same_with_norms_behind_sums_under_every_layout_to_the_bit) {
  TrainConfig base = dropping();
  base.model.residual_after_norm = true;
  const Told one = train(cut_as({.name = "one", .exact = true}, base));
  const std::vector<RunCut> cuts{{.name = "tp2_dp2", .tp = 2, .dp = 2, .micro = 2, .exact = true},
                                 {.name = "pp2_cp2", .pp = 2, .micro = 2, .cp = 2, .exact = true}};
  for (const RunCut& cut : some_of(cuts, 2)) expect_same_bits(train(in_layout(cut, base)), one, cut.name);
  expect_it_goes_on_to_the_bit(base);
}

TEST(LayerDropRun, is_the_same_in_fast_mode_but_for_rounding) {
  const std::vector<RunCut> cuts{{.name = "tp2_dp2", .tp = 2, .dp = 2, .micro = 2},
                                 {.name = "dp2_zero2", .dp = 2, .micro = 2, .zero = 2},
                                 {.name = "dp4_zero3", .dp = 4, .micro = 1, .zero = 3}};
  const Told one = train(cut_as({.name = "one", .micro = 2}, dropping()));
  for (const RunCut& cut : some_of(cuts, 2)) {
    expect_same_but_for_rounding(train(in_layout(cut, dropping())), one, cut);
  }
}

TEST(LayerDropRun, goes_on_from_a_checkpoint_to_the_bit) { expect_it_goes_on_to_the_bit(dropping()); }

TEST(LayerDropRun, counts_the_work_of_the_layers_that_a_step_goes_through) {
  const TrainConfig c = completed(dropping());
  const std::vector<NamedLoss> losses = kind_of(c.model).losses(c.model);
  const auto flops_of = teller_settings(c, losses).flops_of;
  for (std::int64_t step = 1; step <= 6; ++step) {
    ModelConfig smaller = c.model;
    smaller.layers = kept(c)[std::size_t(step - 1)];
    EXPECT_EQ(flops_of(step, 8), 8 * training_flops(smaller, c.model.sequence)) << step;
  }
}

// Of four layers the first and the third have experts, which cost another number than an MLP.
TEST(LayerDropRun, counts_the_work_of_the_experts_that_a_step_goes_through) {
  TrainConfig base = dropping();
  base.model.experts.count = 4;
  base.model.experts.every = 2;
  base.model.linear_bias = false;
  const TrainConfig c = completed(base);
  const auto flops_of = teller_settings(c, kind_of(c.model).losses(c.model)).flops_of;
  for (std::int64_t step = 1; step <= 6; ++step) {
    ModelConfig smaller = c.model;
    smaller.experts.layers.clear();
    for (int layer = 0; layer < 4; ++layer)
      if (weight_of_layer(c.model.layer_drop, std::uint64_t(c.run.seed), step, {layer, 4}) > 0)
        smaller.experts.layers.push_back(c.model.experts.layers[std::size_t(layer)]);
    smaller.layers = int(smaller.experts.layers.size());
    EXPECT_EQ(flops_of(step, 8), 8 * training_flops(smaller, c.model.sequence)) << step;
  }
}

TEST(LayerDropRun, refuses_models_whose_layers_cannot_be_left_out) {
  const auto with = [](const Change& more) {
    return [=](TrainConfig& c) {
      c.model.layer_drop.theta = 0.5;
      more(c);
    };
  };
  refused(with([](TrainConfig& c) {
            c.model.kind = "t5", c.model.decoder_layers = 2, c.model.decoder_sequence = 16;
          }),
          "{model.layer_drop.theta}: a model of the family t5 has two stacks, and no order of depth over "
          "both; DeepSpeed leaves out layers of a BERT: leave it out");
}
