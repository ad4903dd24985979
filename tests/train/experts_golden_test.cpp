// Numbers of mixtures of experts against Megatron's: tests/golden/experts says how they were made.
#include "tests/train/golden_experts.h"

using namespace weft;
using namespace weft::testing;
using namespace weft::testing::experts;
using nlohmann::json;

namespace {

std::vector<Original> with_gradients() {
  std::vector<Original> out = originals();
  std::erase_if(out, [](const Original& o) { return o.grads.empty(); });
  return out;
}

class GoldenExperts : public ::testing::TestWithParam<Original> {
 protected:
  GoldenExperts() { golden_.set_weights(replica_.weights()); }

  Batch batch_of(const checkpoint::TensorFile& file, std::int64_t first) const {
    return golden_batch(*device_, file, first);
  }
  void expect_told(const StepReport& report, const json& expected) const {
    for (const auto& [name, value] : expected.items()) {
      if (double(value) == 0) continue;  // Megatron tells of a loss that is not there, too
      EXPECT_NEAR(told(replica_, report, name), double(value), 1e-5 * double(value)) << name;
    }
  }
  void expect_counts(const json& expected) const {
    replica_.stages().at(0).each_router([&](Router& router) {
      const auto& counts = expected["layer" + std::to_string(router.layer())];
      EXPECT_EQ(numbers(router.counts().chosen), counts.get<std::vector<double>>()) << router.layer();
    });
  }
  void expect_biases(const json& expected) const {
    std::size_t layer = 0;
    replica_.each_parameter([&](Parameter& p) {
      if (!p.name.ends_with("expert_bias")) return;
      const auto bias = expected[layer++].get<std::vector<double>>();
      for (std::size_t e = 0; e < bias.size(); ++e) EXPECT_NEAR(numbers(p.value)[e], bias[e], 1e-6) << p.name;
    });
    EXPECT_EQ(layer, expected.size());
  }

  const Original& original_ = GetParam();
  const GoldenEncoder golden_ = golden_of(original_);
  std::unique_ptr<Device> device_ = open_device("cpu", {.threads = 1});
  SoloCommunicator solo_;
  ProcessMesh mesh_{ParallelLayout({.etp = 1}), solo_};
  Replica replica_{{.model = completed_model(original_), .optimizer = {.beta1 = 0.9, .beta2 = 0.95}},
                   {*device_, mesh_}};
};

class GoldenGradients : public GoldenExperts {
 protected:
  checkpoint::TensorFile told_of_probe() const {
    const bool first = original_.model.experts.router.drop == DropPolicy::position;
    return checkpoint::TensorFile(golden_.file(first ? "probe_position.safetensors" : "probe.safetensors"));
  }
  /// Of every token, the first of them as long as anybody has one.
  void expect_losses(const Pass& pass, const Batch& batch) const {
    const auto ours = std::ranges::find(pass.losses(), 0, &Measured::loss);
    ASSERT_NE(ours, pass.losses().end());
    const std::vector<float> theirs = turned<float>(told_of_probe(), "losses", 0);
    const std::vector<double> terms = numbers(ours->terms), counts = numbers(batch.mask);
    ASSERT_EQ(terms.size(), theirs.size());
    for (std::size_t i = 0; i < terms.size(); ++i)
      EXPECT_NEAR(terms[i], counts[i] * double(theirs[i]), 1e-5 * double(theirs[i])) << i;
  }
};

/// What flows from sublayer to sublayer.
class Flowing final : public Watch {
 public:
  void see(const char*, int layer, const Tensor& x) override {
    auto& [before, last] = seen_[layer];
    before = std::exchange(last, numbers(x));
  }
  /// By the last sublayer of a layer.
  std::vector<double> gained_last(int layer) const {
    auto [before, gained] = seen_.at(layer);
    for (std::size_t i = 0; i < gained.size(); ++i) gained[i] -= before[i];
    return gained;
  }

 private:
  std::map<int, std::pair<std::vector<double>, std::vector<double>>> seen_;
};

/// Weights [t, k] where they belong, [t, e]; 0 where nothing is chosen, and where it was dropped.
std::vector<double> by_expert(const Router::Out& out, std::int64_t experts) {
  const std::vector<double> weights = numbers(out.weights), chosen = numbers(out.experts);
  std::vector<double> all(std::size_t(out.weights.dim(0) * experts));
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (chosen[i] >= 0)
      all[i / std::size_t(out.weights.dim(1)) * std::size_t(experts) + std::size_t(chosen[i])] = weights[i];
  return all;
}

/// The key part of a bias moves no score against another: its gradient is zero, and what is computed is
/// noise.
bool is_noise(const std::string& name, std::size_t i) {
  return name.ends_with("attention.qkv.bias") && i / (hidden / heads) % 3 == 1;
}

std::string name_of(const ::testing::TestParamInfo<Original>& info) {
  std::string run = info.param.run.substr(0, info.param.run.find('.'));
  return info.param.folder + "_" + run;
}

}  // namespace

TEST_P(GoldenGradients, are_megatrons) {
  const checkpoint::TensorFile probe(golden_.file("probe.safetensors"));
  const Batch batch = batch_of(probe, 0);
  float counting = 0;
  for (const double counts : numbers(batch.mask)) counting += float(counts);
  const float tokens = 2 * sequence;
  Pass pass;
  pass.open(batch, {.seed = 1,
                    .step = 1,
                    .factors = {.token = 1 / counting,
                                .sample = 0.5F,
                                .pass = 1,
                                .balance = original_.per_token ? tokens / counting : 1}});
  const Stage& stage = replica_.stages().at(0);
  (void)stage.forward(pass, {});
  expect_losses(pass, batch);
  (void)stage.backward(pass, {});
  const checkpoint::TensorFile expected(golden_.file(original_.grads));
  golden_.expect_gradients(stage, is_noise, expected);
}

// What the first layer of experts read, and what became of it.
TEST_P(GoldenGradients, follow_from_megatrons_choices_and_probabilities) {
  const checkpoint::TensorFile probe(golden_.file("probe.safetensors")), told = told_of_probe();
  const Batch batch = batch_of(probe, 0);
  int compared = 0;
  replica_.stages().at(0).each_router([&](Router& router) {
    if (compared++ > 0) return;
    const std::string layer = "layer" + std::to_string(router.layer());
    const Tensor x = from_host(*device_, {sequence, 2, hidden}, read<float>(probe, layer + ".moe_input"));
    Pass pass;
    pass.open(batch, {.seed = 1, .step = 1});
    const std::vector<double> ours = by_expert(router.forward(pass, x), router.experts());
    const auto theirs = read<float>(told, layer + ".probs");
    const auto chosen = read<std::uint8_t>(told, layer + ".map");
    ASSERT_EQ(ours.size(), theirs.size());
    for (std::size_t i = 0; i < ours.size(); ++i) {
      EXPECT_EQ(ours[i] != 0, chosen[i] != 0) << i;
      EXPECT_NEAR(ours[i], theirs[i], 1e-6) << i;
    }
  });
  EXPECT_GT(compared, 0);
}

// What the whole layer gave, shared experts and all: what the stream gained behind the block's attention.
TEST_P(GoldenGradients, follow_from_megatrons_outputs_of_experts) {
  const checkpoint::TensorFile told = told_of_probe();
  const Batch batch = batch_of(checkpoint::TensorFile(golden_.file("probe.safetensors")), 0);
  Flowing flowing;
  Pass pass;
  pass.open(batch, {.seed = 1, .step = 1}, &flowing);
  (void)replica_.stages().at(0).forward(pass, {});
  int compared = 0;
  replica_.stages().at(0).each_router([&](Router& router) {
    ++compared;
    const std::vector<double> ours = flowing.gained_last(router.layer());
    const auto theirs = read<float>(told, "layer" + std::to_string(router.layer()) + ".moe_output");
    ASSERT_EQ(ours.size(), theirs.size());
    // Outputs are 0.5 to 1.5 at most, and the stream that they were added to has f32's rounding.
    for (std::size_t i = 0; i < ours.size(); ++i) EXPECT_NEAR(ours[i], theirs[i], 4e-6) << i;
  });
  EXPECT_GT(compared, 0);
}

TEST_P(GoldenExperts, trains_for_twenty_steps_as_megatron_does) {
  const checkpoint::TensorFile data(golden_.file("data.safetensors"));
  const json said = json::parse(std::ifstream(golden_.file(original_.run)));
  for (std::int64_t step = 1; step <= 20; ++step) {
    const json& expected = said["steps"][std::size_t(step - 1)];
    const double loss = expected["loss_reported"], norm = expected["grad_norm"];
    const std::vector<Batch> batches{batch_of(data, 4 * step - 4), batch_of(data, 4 * step - 2)};
    const StepReport report = replica_.step(batches, golden_order(original_, expected, step));
    SCOPED_TRACE("step " + std::to_string(step));
    EXPECT_NEAR(report.loss(), loss, 1e-5 * loss);
    EXPECT_NEAR(report.grad_norm, norm, original_.norm * norm);
    expect_told(report, expected["aux_logged"]);
    expect_counts(expected["tokens_per_expert"]);
    if (expected.contains("expert_bias_after")) expect_biases(expected["expert_bias_after"]);
  }
  // A step moves a weight by 1e-3 at most; another program of the same arithmetic came to within 6e-6.
  if (original_.has_weights())
    golden_.expect_weights(replica_.weights(), "weights_after_20.safetensors", 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Originals, GoldenExperts, ::testing::ValuesIn(originals()), name_of);
INSTANTIATE_TEST_SUITE_P(Originals, GoldenGradients, ::testing::ValuesIn(with_gradients()), name_of);
