// A device that does everything later gives the processor's bits, and the host waits for it once a step.
#include <gtest/gtest.h>

#include <array>

#include "tests/equal/run.h"
#include "tests/support/refused.h"
#include "tests/support/sanitized.h"
#include "weft/backend/open.h"
#include "weft/ops/elementwise.h"
#include "weft/tensor/host.h"

using namespace weft;
using namespace weft::testing;

namespace {

std::vector<Cut> late_cuts() {
  return {{{.dp = 1}, 2},
          {{.dp = 2}, 1},
          {{.tp = 2, .dp = 1, .sequence = true}, 2},
          {{.cp = 2, .dp = 1}, 2},
          {{.cp = 2, .dp = 1, .context = ContextForm::heads}, 2},
          {{.pp = 2, .dp = 1}, 1},
          {{.tp = 2, .pp = 2, .dp = 2, .sequence = true}, 1},
          {{.dp = 2, .zero = 1}, 1},
          {{.dp = 2, .zero = 3}, 1}};
}

Curve trained(const std::string& name, Cut cut, std::optional<Late> late, Precision precision) {
  ModelConfig config = shape_of(name, cut.parallel.pp > 1 ? 4 : 2);
  config.precision = precision;
  cut.steps = rounds(3);
  cut.uneven = cut.per_token = cut.parallel.dp > 1;
  cut.late = late;
  return train(config, cut);
}

class LateSteps : public ::testing::TestWithParam<std::tuple<std::string, Cut>> {};

TEST_P(LateSteps, have_the_bits_of_the_processor_and_one_wait_each) {
  const auto& [name, cut] = GetParam();
  const Curve now = trained(name, cut, {}, Precision::f32);
  for (const Late when : {Late::at_once, Late::when_waited}) {
    const Curve later = trained(name, cut, when, Precision::f32);
    EXPECT_EQ(later.losses, now.losses);
    EXPECT_EQ(later.norms, now.norms);
    EXPECT_EQ(later.evaluations, now.evaluations);
    EXPECT_TRUE(later.copies_agree);
    EXPECT_EQ(later.most_waits, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, LateSteps,
                         ::testing::Combine(::testing::Values("gpt2", "bert", "t5"),
                                            ::testing::ValuesIn(late_cuts())),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" + name_of(std::get<1>(test.param));
                         });

// The loss scale is decided by the same look.
TEST(LateSteps, of_f16_wait_once_too) {
  Cut cut{{.dp = 1}, 2};
  cut.loss_scale = 0x1p60;  // overflows
  const Curve now = trained("gpt2", cut, {}, Precision::f16);
  const Curve later = trained("gpt2", cut, Late::when_waited, Precision::f16);
  EXPECT_EQ(later.losses, now.losses);
  EXPECT_GT(now.skipped, 0);
  EXPECT_EQ(later.skipped, now.skipped);
  EXPECT_EQ(later.most_waits, 1);
}

// Norms of tensors stay on the device, of those too that ranks bring together first.
TEST(LateSteps, of_optimizers_that_look_at_tensors_norms_wait_no_more) {
  OptimizerConfig lamb{.kind = OptimizerKind::lamb}, muon{.kind = OptimizerKind::muon}, whole = muon;
  whole.muon.ranks = MuonRanks::duplicated;
  for (const OptimizerConfig& optimizer : {lamb, muon, whole})
    for (const int tp : {1, 2}) {
      Cut cut{{.tp = tp, .dp = 1}, 2};
      cut.optimizer = optimizer;
      const Curve now = trained("gpt2", cut, {}, Precision::f32);
      const Curve later = trained("gpt2", cut, Late::when_waited, Precision::f32);
      EXPECT_EQ(later.losses, now.losses);
      EXPECT_EQ(later.norms, now.norms);
      EXPECT_EQ(later.most_waits, 1);
    }
}

// How large what travels as signs is stays on the device, too. One-bit LAMB asks what it knew of tensors, how
// their second moments grew, and for two norms; before momenta travel, for theirs.
TEST(LateSteps, of_optimizers_that_send_signs_wait_for_none) {
  OptimizerConfig one_bit{.kind = OptimizerKind::onebitadam, .epsilon = 1e-3, .onebit = {.freeze = 2}};
  OptimizerConfig lamb = one_bit, zero_one = one_bit;
  lamb.kind = OptimizerKind::onebitlamb;
  zero_one.kind = OptimizerKind::zerooneadam;
  zero_one.zeroone = {.freeze = 1, .variance_steps = 1, .local_steps = 1, .most_local = 2};
  for (const auto& [optimizer, waits] : {std::pair{one_bit, 1}, {zero_one, 1}, {lamb, 5}}) {
    Cut cut{{.dp = 2}, 1};
    cut.optimizer = optimizer;
    const Curve now = trained("gpt2", cut, {}, Precision::f32);
    const Curve later = trained("gpt2", cut, Late::when_waited, Precision::f32);
    EXPECT_EQ(later.losses, now.losses);
    EXPECT_EQ(later.norms, now.norms);
    EXPECT_EQ(later.most_waits, waits) << words(optimizer.kind)[std::size_t(optimizer.kind)];
  }
}

// Shapes follow from how many rows an expert gets, so every layer of experts is waited for, once: everybody's
// counts are read together. The two tables of what routers did come with the losses.
TEST(LateSteps, of_experts_wait_for_the_counts_of_each_layer) {
  constexpr int layers = 2, microbatches = 4;
  for (const Cut& cut : {Cut{{.dp = 1}, 2}, {{.dp = 2, .ep = 2}, 1}}) {
    const Curve now = trained("mixture", cut, {}, Precision::f32);
    const Curve later = trained("mixture", cut, Late::when_waited, Precision::f32);
    EXPECT_EQ(later.losses, now.losses);
    EXPECT_EQ(later.norms, now.norms);
    EXPECT_EQ(later.evaluations, now.evaluations);
    EXPECT_EQ(later.most_waits, 1 + layers * microbatches);
  }
}

/// Some steps have the processor's bits, and wait so often each.
void expect_waits(const ModelConfig& config, Cut cut, int waits) {
  cut.steps = rounds(3);
  const Curve now = train(config, cut);
  cut.late = Late::when_waited;
  const Curve later = train(config, cut);
  EXPECT_EQ(later.losses, now.losses) << name_of(cut);
  EXPECT_EQ(later.norms, now.norms) << name_of(cut);
  EXPECT_EQ(later.evaluations, now.evaluations) << name_of(cut);
  EXPECT_EQ(later.most_waits, waits) << name_of(cut);
}

// Where experts are filled up, shapes follow from settings, whoever sends them rows.
TEST(LateSteps, of_experts_that_are_filled_up_wait_for_no_counts) {
  ModelConfig config = shape_of("mixture", 2);
  config.experts.router.capacity = 1;
  config.experts.router.filled = true;
  for (const Cut& cut : {Cut{{.dp = 1}, 2}, {{.dp = 2, .ep = 2}, 1}, {{.dp = 4, .ep = 2, .etp = 2}, 1}})
    expect_waits(config, cut, 1);
}

// Who draws by sample asks the batch which these are, not the device.
TEST(LateSteps, of_layers_that_draw_on_the_host_wait_no_more) {
  ModelConfig jitters = shape_of("mixture", 2), drops = shape_of("gpt2", 4);
  jitters.experts.router.jitter = 0.1;
  drops.token_drop = {.layers = {1, 2}, .least = 4, .most = 8, .steps = 100};
  expect_waits(jitters, {{.dp = 1}, 2}, 1 + 2 * 4);
  expect_waits(drops, {{.dp = 1}, 2}, 1);
}

std::unique_ptr<LateDevice> late_device(Late when = Late::when_waited) {
  return std::make_unique<LateDevice>(open_device("cpu", {.threads = 1}), when);
}

TEST(LateDevices, do_nothing_before_the_host_waits_and_keep_the_order_of_asking) {
  const auto device = late_device();
  const Tensor x = ops::zeros(*device, {3});
  std::array<float, 3> first{}, second{};
  const Fence early = device->copy_to_host(first.data(), *x.storage(), 0, 12);
  ops::fill(x, 2);
  const Fence late = device->copy_to_host(second.data(), *x.storage(), 0, 12);
  EXPECT_NE(first[0], 0);
  late.wait();
  early.wait();
  EXPECT_EQ(first[0], 0);
  EXPECT_EQ(second[2], 2);
  EXPECT_EQ(device->waits(), 1);
}

TEST(LateDevices, tell_a_host_that_reads_by_itself) {
  const auto device = late_device(Late::at_once);
  const Tensor x = ops::zeros(*device, {2});
  EXPECT_EQ(refused([&] { (void)x.as<float>(); }),
            "tensor: [2] lies on late, where the host does not read; copy it with weft/tensor/host.h");
}

TEST(LateDevices, take_short_copies_at_once_and_have_a_fence_for_long_ones) {
  const auto device = late_device();
  const Tensor small = empty(*device, {2}), large = empty(*device, {1000});
  std::vector<float> from(1000, 1);
  EXPECT_FALSE(device->copy_from_host(*small.storage(), 0, from.data(), 8));
  EXPECT_TRUE(device->copy_from_host(*large.storage(), 0, from.data(), 4000));
  from.assign(1000, 2);  // before the fence: a fault, and it shows
  EXPECT_EQ(numbers(small), (std::vector<double>{1, 1}));
  EXPECT_EQ(numbers(large)[0], 2);
}

TEST(LateDevices, fail_where_the_host_waits) {
  const auto device = late_device();
  device->ask([] { fail(Kind::device, "out of order"); });
  EXPECT_EQ(refused([&] { device->synchronize(); }), "out of order");
}

}  // namespace
