// The same training under every layout: losses and gradient norms against one rank's.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "tests/support/tiny.h"
#include "weft/comm/threads.h"
#include "weft/mesh/mesh.h"
#include "weft/train/step.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr int steps = 20;
constexpr std::int64_t global_batch = 8;

struct Cut {
  ParallelLayout::Degrees degrees;
  bool sequence = false;
  std::int64_t micro_batch = 2;
};

struct Curve {
  std::vector<double> losses, norms;
};

/// This rank's samples of a step: the global batch is the same whatever the layout.
std::vector<Batch> batches_of(Device& device, const ModelConfig& config, const Cut& cut, int dp_rank,
                              int step) {
  std::vector<Batch> out;
  const std::int64_t per_rank = global_batch / cut.degrees.dp;
  for (std::int64_t first = 0; first < per_rank; first += cut.micro_batch)
    out.push_back(tiny_rows(device, config,
                            {.step = step, .first = dp_rank * per_rank + first, .count = cut.micro_batch}));
  return out;
}

Curve train(const ModelConfig& config, const Cut& cut) {
  Curve curve;
  std::mutex mutex;
  const ParallelLayout layout(cut.degrees);
  run_as_threads(layout.world(), [&](Communicator& world) {
    const auto device = open_device("cpu", {.threads = 1});
    const ProcessMesh mesh(layout, world);
    std::map<int, Stage> stages;
    stages[0] = build_gpt(
        config, {.first_layer = 0, .layers = config.layers},
        {.tp = mesh.along(Axis::tp), .between = cut.sequence ? Between::sequence_cut : Between::whole},
        *device);
    Weights weights([&](const VisitParameter& visit) { stages[0].each_parameter(visit); }, *device,
                    TinyModel::dtype_for(config.precision), Weights::For::training);
    weights.initialize(7);
    const auto adam = make_adam(weights, {});
    const int microbatches = int(global_batch / cut.degrees.dp / cut.micro_batch);
    const pipe::Schedule schedule = pipe::one_f_one_b(1, microbatches);
    pipe::Runner runner(schedule, stages, mesh.along(Axis::pp), *device);
    const Workshop shop{stages, weights, *adam, runner, mesh};
    for (int step = 1; step <= steps; ++step) {
      const auto batches = batches_of(*device, config, cut, mesh.place(Axis::dp), step);
      const double rate = 5e-3 * std::min(1.0, (step - 1) / 5.0);
      const StepReport report =
          train_step(shop, batches,
                     {.seed = 3, .step = step, .rate = rate, .ends_rate = rate, .decay = 0.01, .clip = 1.0});
      std::lock_guard lock(mutex);
      if (world.rank() > 0) continue;
      curve.losses.push_back(report.loss);
      curve.norms.push_back(report.grad_norm);
    }
  });
  return curve;
}

ModelConfig shape_of(const std::string& name) {
  ModelConfig config = name == "gpt2" ? tiny_gpt2() : tiny_llama();
  if (name == "llama") config.groups = config.heads;  // so that four ranks have a group each
  config.hidden_dropout = config.attention_dropout = 0.1;
  complete(config);
  return config;
}

class Layouts : public ::testing::TestWithParam<std::tuple<std::string, Cut>> {};

}  // namespace

// Sums over a cut contraction, over ranks and over microbatches are rounded in another order: a few units in
// the last place of f32 a step, which twenty steps of Adam carry on to no more than 2e-4 in a loss of
// about 3.4.
TEST_P(Layouts, train_as_one_rank_does) {
  const auto& [name, cut] = GetParam();
  const ModelConfig config = shape_of(name);
  const Curve alone = train(config, {.degrees = {}, .sequence = false, .micro_batch = 8});
  const Curve cut_up = train(config, cut);
  ASSERT_EQ(cut_up.losses.size(), std::size_t(steps));
  EXPECT_LT(alone.losses.back(), alone.losses.front());
  for (std::size_t i = 0; i < alone.losses.size(); ++i) {
    EXPECT_NEAR(cut_up.losses[i], alone.losses[i], 2e-4) << "step " << i + 1;
    EXPECT_NEAR(cut_up.norms[i], alone.norms[i], 2e-3 * alone.norms[i]) << "step " << i + 1;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Layouts,
                         ::testing::Combine(::testing::Values("gpt2", "llama"),
                                            ::testing::Values(Cut{{.tp = 2}}, Cut{{.tp = 4}},
                                                              Cut{{.tp = 2}, true}, Cut{{.tp = 4}, true},
                                                              Cut{{.dp = 2}}, Cut{{.dp = 4}, false, 1},
                                                              Cut{{.tp = 2, .dp = 2}, true, 1})),
                         [](const auto& test) {
                           const Cut& cut = std::get<1>(test.param);
                           return std::get<0>(test.param) + "_tp" + std::to_string(cut.degrees.tp) + "_dp" +
                                  std::to_string(cut.degrees.dp) + (cut.sequence ? "_sp" : "");
                         });

TEST(Layouts, the_same_layout_gives_the_same_bits_twice) {
  const Cut cut{{.tp = 2, .dp = 2}, true};
  const Curve first = train(shape_of("gpt2"), cut);
  const Curve second = train(shape_of("gpt2"), cut);
  EXPECT_EQ(first.losses, second.losses);
  EXPECT_EQ(first.norms, second.norms);
}
