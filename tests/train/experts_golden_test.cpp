// Numbers of mixtures of experts against Megatron's: tests/golden/experts says how they were made.
#include "tests/train/golden_encoder.h"

using namespace weft;
using namespace weft::testing;
using nlohmann::json;

namespace {

constexpr std::int64_t sequence = 32, hidden = 64, heads = 4;

/// Our names and Megatron's.
constexpr GoldenEncoder::Spelling spelling[] = {
    {"embedding.words", "embedding.word_embeddings.weight"},
    {"embedding.positions", "embedding.position_embeddings.weight"},
    {"output.words", "output_layer.weight"},
    {"layers.", "decoder.layers."},
    {"attention_norm", "input_layernorm"},
    {"attention.qkv", "self_attention.linear_qkv"},
    {"attention.project", "self_attention.linear_proj"},
    {"mlp_norm", "pre_mlp_layernorm"},
    {".experts.", ".mlp.experts.local_experts."},
    {".router.", ".mlp.router."},
    {".shared.", ".mlp.shared_experts."},
    {".up.", ".linear_fc1."},
    {".down.", ".linear_fc2."},
    {"final_norm", "decoder.final_layernorm"},
    {".gain", ".weight"}};

ModelConfig common() {
  ModelConfig c;
  c.layers = 2;
  c.hidden = hidden;
  c.heads = heads;
  c.groups = 2;
  c.ffn_hidden = 96;
  c.sequence = c.max_positions = sequence;
  c.vocabulary = 128;
  c.positions = Positions::rotary;
  c.norm = NormKind::rms;
  c.activation = Activation::silu;
  c.gated = true;
  c.linear_bias = c.qkv_bias = c.tied_output = false;
  c.hidden_dropout = c.attention_dropout = 0;
  c.experts.count = 4;
  c.experts.ffn_hidden = 24;
  return c;
}

ModelConfig m1() {
  ModelConfig c = common();
  c.experts.router.coefficients = {0.02};
  c.experts.router.z_loss = 0.003;
  return c;
}

ModelConfig m2() {
  ModelConfig c = common();
  c.experts.count = 6;
  c.experts.layers = {0, 1};
  c.experts.shared_hidden = 40;
  c.experts.router = {.chosen = 1, .softmax_first = true, .coefficients = {0.01}};
  return c;
}

ModelConfig m3() {
  ModelConfig c = common();
  c.groups = 4;
  c.experts.count = 8;
  c.experts.ffn_hidden = 12;
  c.experts.router = {.score = RouterScore::sigmoid,
                      .groups = 2,
                      .groups_kept = 1,
                      .scaling = 2.5,
                      .expert_bias = true,
                      .bias_rate = 0.01,
                      .balancing = {Balancing::seq_aux_loss},
                      .coefficients = {0.05}};
  return c;
}

ModelConfig m4() {
  ModelConfig c = common();
  c.groups = 1;
  c.experts.router = {.coefficients = {0.01}, .capacity = 0.8};
  return c;
}

ModelConfig m5() {
  ModelConfig c = common();
  c.groups = 4;
  c.positions = Positions::learned;
  c.norm = NormKind::layer;
  c.activation = Activation::gelu_erf;
  c.gated = false;
  c.linear_bias = c.qkv_bias = c.tied_output = true;
  c.experts.ffn_hidden = 32;
  c.experts.router.coefficients = {0.01};
  return c;
}

/// One of the originals: a folder, the file of its steps there, and whether the mean is one over tokens.
struct Original {
  std::string folder, run;
  ModelConfig model;
  bool per_token = false;
  std::string grads = "probe_grads.safetensors";  // of its probe; empty: not written down
  double norm = 1e-5;                             // how far gradient norms may part, of themselves
};

ModelConfig changed(ModelConfig c, void (*change)(RouterConfig&)) {
  change(c.experts.router);
  return c;
}

std::vector<Original> originals() {
  const auto with = [](ModelConfig c, void (*change)(RouterConfig&)) {
    return changed(std::move(c), change);
  };
  return {
      {"m1", "run.json", m1()},
      {"m1", "run_allgather.json", m1()},
      {"m1", "run_router_fp64.json", with(m1(), [](RouterConfig& r) { r.precision = RouterPrecision::f64; })},
      {"m1", "run_per_token_loss.json", m1(), true, "probe_grads_per_token_loss.safetensors"},
      {"m1",
       "run_two_losses.json",
       with(m1(),
            [](RouterConfig& r) {
              r.balancing = {Balancing::aux_loss, Balancing::seq_aux_loss};
              r.coefficients = {0.02, 0.05};
            }),
       false,
       {}},
      {"m1", "run_global_aux.json",
       with(m1(), [](RouterConfig& r) { r.balancing = {Balancing::global_aux_loss}; })},
      {"m2", "run.json", m2()},
      {"m3", "run.json", m3()},
      {"m4", "run.json", m4()},
      {"m4", "run_probs_pad.json", m4()},
      {"m4", "run_position.json", with(m4(), [](RouterConfig& r) { r.drop = DropPolicy::position; }), false,
       "probe_grads_position.safetensors"},
      {"m4", "run_position_pad.json", with(m4(), [](RouterConfig& r) { r.drop = DropPolicy::position; }),
       false, "probe_grads_position.safetensors"},
      {"m5", "run.json", m5()},
  };
}

std::vector<Original> with_gradients() {
  std::vector<Original> out = originals();
  std::erase_if(out, [](const Original& o) { return o.grads.empty(); });
  return out;
}

class GoldenExperts : public ::testing::TestWithParam<Original> {
 protected:
  GoldenExperts() { golden_.set_weights(replica_.weights()); }

  static ModelConfig completed(ModelConfig model) {
    complete(model);
    return model;
  }
  template <class T>
  std::vector<T> turned(const checkpoint::TensorFile& file, const std::string& name,
                        std::int64_t first) const {
    const auto all = read<T>(file, name);
    std::vector<T> out;
    for (std::int64_t i = 0; i < sequence; ++i)
      for (std::int64_t row = first; row < first + 2; ++row)
        out.push_back(all[std::size_t(row * sequence + i)]);
    return out;
  }
  Batch batch_of(const checkpoint::TensorFile& file, std::int64_t first) const {
    std::vector<std::int32_t> places, positions;
    for (std::int64_t i = 0; i < sequence; ++i) {
      places.push_back(std::int32_t(i));
      positions.insert(positions.end(), 2, std::int32_t(i));
    }
    const Shape shape{sequence, 2};
    Batch batch;
    batch.text = {.tokens = from_host(*device_, shape, turned<std::int32_t>(file, "tokens", first)),
                  .places = from_host(*device_, {sequence}, places),
                  .positions = from_host(*device_, shape, positions),
                  .types = {},
                  .segments = {}};
    batch.targets = from_host(*device_, shape, turned<std::int32_t>(file, "labels", first));
    batch.mask = from_host(*device_, shape, turned<float>(file, "loss_mask", first));
    batch.hold_samples(*device_, {first, first + 1});
    return batch;
  }
  /// By the name under which it is told.
  double told(const StepReport& report, const std::string& name) const {
    for (std::size_t i = 0; i < replica_.losses().size(); ++i)
      if (replica_.losses()[i].name == name) return report.losses[i];
    ADD_FAILURE() << "no loss is called " << name;
    return 0;
  }
  void expect_told(const StepReport& report, const json& expected) const {
    for (const auto& [name, value] : expected.items()) {
      if (double(value) == 0) continue;  // Megatron tells of a loss that is not there, too
      EXPECT_NEAR(told(report, name), double(value), 1e-5 * double(value)) << name;
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
  const GoldenEncoder golden_{"experts/" + original_.folder, spelling};
  std::unique_ptr<Device> device_ = open_device("cpu", {.threads = 1});
  SoloCommunicator solo_;
  ProcessMesh mesh_{ParallelLayout({.etp = 1}), solo_};
  Replica replica_{{.model = completed(original_.model), .optimizer = {.beta1 = 0.9, .beta2 = 0.95}},
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

TEST_P(GoldenExperts, trains_for_twenty_steps_as_megatron_does) {
  const checkpoint::TensorFile data(golden_.file("data.safetensors"));
  const json said = json::parse(std::ifstream(golden_.file(original_.run)));
  for (std::int64_t step = 1; step <= 20; ++step) {
    const json& expected = said["steps"][std::size_t(step - 1)];
    const double rate = expected["lr"], loss = expected["loss_reported"], norm = expected["grad_norm"];
    const std::vector<Batch> batches{batch_of(data, 4 * step - 4), batch_of(data, 4 * step - 2)};
    const StepReport report = replica_.step(batches, {.seed = 1,
                                                      .step = step,
                                                      .rate = rate,
                                                      .ends_rate = rate,
                                                      .decay = 0.1,
                                                      .clip = 1.0,
                                                      .per_token = original_.per_token});
    SCOPED_TRACE("step " + std::to_string(step));
    EXPECT_NEAR(report.loss(), loss, 1e-5 * loss);
    EXPECT_NEAR(report.grad_norm, norm, original_.norm * norm);
    expect_told(report, expected["aux_logged"]);
    expect_counts(expected["tokens_per_expert"]);
    if (expected.contains("expert_bias_after")) expect_biases(expected["expert_bias_after"]);
  }
}

INSTANTIATE_TEST_SUITE_P(Originals, GoldenExperts, ::testing::ValuesIn(originals()), name_of);
INSTANTIATE_TEST_SUITE_P(Originals, GoldenGradients, ::testing::ValuesIn(with_gradients()), name_of);
