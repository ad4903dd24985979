// Losses by name: whatever layer measures one, on whatever stage, all ranks tell the same mean.
#include <gtest/gtest.h>

#include "tests/support/tiny.h"
#include "weft/comm/threads.h"
#include "weft/ops/elementwise.h"
#include "weft/train/replay.h"
#include "weft/train/replica.h"

using namespace weft;
using namespace weft::testing;

namespace {

/// Measures loss 1, of whole samples, loss 2, a mean over a pass, and changes nothing.
class Measurer final : public Layer {
 public:
  Flow forward(Pass& pass, const Flow& x) override {
    Device& device = pass.batch().mask.device();
    const std::vector<float> orders = numbers_of(pass.batch().samples);
    pass.add_loss(1, from_host(device, {std::int64_t(orders.size())}, orders));
    pass.add_loss(2, from_host(device, {1}, std::vector<float>{orders.front() / 2}));
    pass.add_loss(2, from_host(device, {1}, std::vector<float>{orders.front() / 2}));
    return x;
  }
  Flow backward(Pass&, const Flow& dy) override { return dy; }
  void each_parameter(const VisitParameter&) override {}

 private:
  static std::vector<float> numbers_of(const Tensor& samples) {
    std::vector<float> out;
    for (const std::int64_t number : to_host<std::int64_t>(samples)) out.push_back(float(number));
    return out;
  }
};

ModelKind measured_on_the_first_stage() {
  ModelKind kind = kind_named("gpt");
  kind.losses = [](const ModelConfig&) -> std::vector<NamedLoss> {
    return {{.name = "lm loss", .mean = LossMean::microbatches},
            {.name = "sample loss", .mean = LossMean::samples},
            {.name = "pass loss", .mean = LossMean::passes}};
  };
  kind.build = [](const ModelConfig& config, const StagePart& part, const Circles& circles, Device& device) {
    Stage stage = kind_named("gpt").build(config, part, circles, device);
    if (part.embeds) stage.layers.insert(stage.layers.begin() + 1, std::make_unique<Measurer>());
    return stage;
  };
  return kind;
}

/// Samples `first` and the one behind it; of the second, so many tokens count.
Batch two_samples(Device& device, std::int64_t first, std::int64_t counting) {
  const ModelConfig config = tiny_gpt2();
  Batch batch = tiny_rows(device, config, {.step = 1, .first = first, .count = 2});
  std::vector<float> mask(std::size_t(config.sequence * 2), 1);
  for (std::int64_t i = counting; i < config.sequence; ++i) mask[std::size_t(2 * i + 1)] = 0;
  batch.mask = from_host(device, {config.sequence, 2}, mask);
  batch.hold_samples(device, {first, first + 1});
  return batch;
}

struct Told {
  ByLoss<double> step;
  Evaluation evaluation;
};

/// Four microbatches, on so many pipeline ranks and data-parallel ones, as each rank tells them.
std::vector<Told> told(int pp, int dp) {
  std::vector<Told> out(std::size_t(pp * dp));
  run_as_threads(pp * dp, [&](Communicator& world) {
    const auto device = open_device("cpu", {.threads = 1});
    const ProcessMesh mesh(ParallelLayout({.dp = dp, .pp = pp}), world);
    Replica replica(
        {.model = tiny_gpt2(), .kind = measured_on_the_first_stage(), .parallel = {.pp = pp, .dp = dp}},
        {*device, mesh});
    std::vector<Batch> mine;
    for (int i = 0; i < 4; ++i)
      if (i % dp == mesh.place(Axis::dp)) mine.push_back(two_samples(*device, 2 * i, 2 * i + 1));
    Told& here = out[std::size_t(world.rank())];
    replica.evaluate(mine, here.evaluation);
    here.step = replica.step(mine, {.seed = 3, .step = 1}).losses;
  });
  return out;
}

}  // namespace

TEST(NamedLosses, are_told_by_every_rank_whichever_stage_measures_them) {
  const Told alone = told(1, 1).front();
  ASSERT_EQ(alone.step.size(), 3U);
  EXPECT_DOUBLE_EQ(alone.step[1], 3.5);  // samples 0 to 7
  EXPECT_DOUBLE_EQ(alone.step[2], 3.0);  // microbatches begin with samples 0, 2, 4, 6
  for (const auto& [pp, dp] : {std::pair{2, 1}, {1, 2}, {2, 2}})
    for (const Told& rank : told(pp, dp))
      for (std::size_t loss = 0; loss < 3; ++loss) {
        // Sums over microbatches are exact, so the means of losses of equal bits are equal to the bit.
        EXPECT_EQ(rank.step[loss], alone.step[loss]) << pp << dp << loss;
        EXPECT_EQ(rank.evaluation[loss].mean(), alone.evaluation[loss].mean());
      }
}

// A microbatch of few counting tokens weighs as much as one of many; without any it adds nothing.
TEST(NamedLosses, of_microbatches_are_means_of_means) {
  const auto device = open_device("cpu", {.threads = 1});
  SoloCommunicator solo;
  const ProcessMesh mesh{ParallelLayout({}), solo};
  Replica replica({.model = tiny_gpt2(), .kind = measured_on_the_first_stage()}, {*device, mesh});
  const auto mean_of = [&](const std::vector<Batch>& batches) {
    Evaluation sums;
    replica.evaluate(batches, sums);
    return sums[0].mean();
  };
  const Batch few = two_samples(*device, 0, 1), many = two_samples(*device, 2, 8);
  EXPECT_NEAR(mean_of({few, many}), (mean_of({few}) + mean_of({many})) / 2, 1e-6);  // shares are f32
  Batch none = many;
  none.mask = ops::zeros(*device, many.mask.shape());
  EXPECT_NEAR(mean_of({none, many}), mean_of({many}) / 2, 1e-6);
}

// What is computed at a save and again after loading must not show how many samples a microbatch holds.
TEST(NamedLosses, of_microbatches_may_be_taken_over_all_tokens) {
  const auto device = open_device("cpu", {.threads = 1});
  SoloCommunicator solo;
  const ProcessMesh mesh{ParallelLayout({}), solo};
  Replica replica({.model = tiny_gpt2(), .kind = measured_on_the_first_stage()}, {*device, mesh});
  const Batch few = two_samples(*device, 0, 1), many = two_samples(*device, 2, 8);
  const auto taken = [&](const std::vector<Batch>& batches, int together) {
    Evaluation sums;
    replica.evaluate(batches, sums, together);
    return sums[0];
  };
  const LossSum whole = taken({few, many}, 0);
  EXPECT_EQ(whole.count, 9 + 16);
  EXPECT_NEAR(whole.sum, 9 * taken({few}, 1).mean() + 16 * taken({many}, 1).mean(), 1e-5);
}

TEST(NamedLosses, stand_in_the_line_in_their_order) {
  const auto losses = kind_of({}).losses({});
  ASSERT_EQ(losses.size(), 1U);
  EXPECT_EQ(losses.front().name, "lm loss");
  EXPECT_EQ(losses.front().mean, LossMean::tokens);
}

TEST(NamedLosses, stand_by_name_in_the_record_of_a_step) {
  const Replay saved{.step = 7, .losses = {{"lm loss", 2}, {"sop loss", 0.5}}, .tensors = {}};
  const std::string json = to_json(saved, Hash{});
  EXPECT_NE(json.find(R"("sop loss": 0.5)"), std::string::npos) << json;
  Replay now = replay_from_json(json, Hash{}, "x");
  EXPECT_EQ(difference(saved, now, 0), "");
  now.losses[1].mean = 0.25;
  EXPECT_EQ(difference(saved, now, 0), "its sop loss is 0.25, and was 0.5");
  const Replay one{.losses = {{"lm loss", 2}}, .tensors = {}},
      other{.losses = {{"lm loss", 3}}, .tensors = {}};
  EXPECT_NE(to_json(one, Hash{}).find(R"("loss": 2.0)"), std::string::npos);
  EXPECT_EQ(difference(one, other, 0), "its loss is 3, and was 2");
}
