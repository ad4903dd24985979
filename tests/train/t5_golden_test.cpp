// A T5's numbers against Megatron's: tests/golden/encoders says how they were made.
#include "tests/train/golden_encoder.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr std::int64_t encoder_length = 32, decoder_length = 24, heads = 4, channels = 12, vocabulary = 128;

ModelConfig golden_t5() {
  ModelConfig config;
  config.kind = "t5";
  config.layers = 2;
  config.decoder_layers = 3;
  config.hidden = heads * channels;
  config.heads = heads;
  config.ffn_hidden = 96;
  config.sequence = config.max_positions = encoder_length;
  config.decoder_sequence = decoder_length;
  config.vocabulary = vocabulary;
  config.activation = Activation::gelu;
  config.hidden_dropout = config.attention_dropout = 0;
  complete(config);
  return config;
}

/// Our names and Megatron's.
constexpr GoldenEncoder::Spelling spelling[] = {
    {"embedding.words", "embedding.word_embeddings.weight"},
    {"embedding.positions", "embedding.position_embeddings.weight"},
    {"attention_norm", "input_layernorm"},
    {"attention.qkv", "self_attention.linear_qkv"},
    {".attention.project", ".self_attention.linear_proj"},
    {"cross_norm", "pre_cross_attn_layernorm"},
    {"cross.query", "cross_attention.linear_q"},
    {"cross.key_value", "cross_attention.linear_kv"},
    {"cross.project", "cross_attention.linear_proj"},
    {"mlp_norm", "pre_mlp_layernorm"},
    {"mlp.up", "mlp.linear_fc1"},
    {"mlp.down", "mlp.linear_fc2"},
    {"final_norm", "final_layernorm"},
    {"output.bias", "lm_head.output_layer.bias"},
    {".gain", ".weight"}};
const GoldenEncoder golden{"encoders/t5_learned", spelling};

Batch batch_of(Device& device, const checkpoint::TensorFile& file, std::int64_t first) {
  const GoldenPair pair(device, file, first);
  Batch batch;
  batch.source = pair.sequences("text_enc", "enc_mask", encoder_length);
  batch.text = pair.sequences("text_dec", "dec_mask", decoder_length);
  batch.targets = pair.turned<std::int32_t>("labels", decoder_length);
  batch.mask = pair.turned<float>("loss_mask", decoder_length);
  batch.samples = pair.samples();
  return batch;
}

class GoldenT5 : public ::testing::Test {
 protected:
  GoldenT5() { golden.set_weights(replica_.weights()); }
  const Stage& stage() const { return replica_.stages().at(0); }
  Batch probe() const { return batch_of(*device_, probe_, 0); }
  std::vector<std::int32_t> probed(const std::string& name) const {
    return GoldenPair(*device_, probe_, 0).rows(name, decoder_length);
  }
  void expect_loss(const nlohmann::json& expected) {
    Evaluation sums;
    const std::vector<Batch> batches{probe()};
    replica_.evaluate(batches, sums);
    EXPECT_NEAR(sums[0].mean(), double(expected["lm loss"]), 1e-5);
  }

  std::unique_ptr<Device> device_ = open_device("cpu", {.threads = 1});
  SoloCommunicator solo_;
  ProcessMesh mesh_{ParallelLayout({}), solo_};
  Replica replica_{{.model = golden_t5(), .optimizer = {.beta2 = 0.95}}, {*device_, mesh_}};
  checkpoint::TensorFile probe_{golden.file("probe.safetensors")};
};

/// The key part of a bias moves no score against another: its gradient is zero, and what is computed is
/// noise.
bool is_noise(const std::string& name, std::size_t i) {
  const std::size_t part = i / std::size_t(channels);
  return (name.ends_with("attention.qkv.bias") && part % 3 == 1) ||
         (name.ends_with("cross.key_value.bias") && part % 2 == 0);
}

}  // namespace

TEST_F(GoldenT5, has_megatrons_logits) {
  const Batch batch = probe();
  Pass pass;
  pass.open(batch, {.training = false, .logits_from = 0, .logits_count = decoder_length});
  (void)stage().forward(pass, {});
  const auto logits = numbers(pass.logits());
  const auto expected = read<float>(probe_, "logits");
  const auto there = probed("dec_mask");
  for (std::int64_t row = 0; row < 2; ++row)
    for (std::int64_t i = 0; i < decoder_length; ++i) {
      if (there[std::size_t(row * decoder_length + i)] == 0) continue;  // what padding says means nothing
      for (std::int64_t word = 0; word < vocabulary; ++word)
        ASSERT_NEAR(logits[std::size_t((i * 2 + row) * vocabulary + word)],
                    expected[std::size_t((row * decoder_length + i) * vocabulary + word)], 1e-5)
            << row << " " << i << " " << word;
    }
}

TEST_F(GoldenT5, has_megatrons_loss_of_every_token) {
  const Batch batch = probe();
  Pass pass;
  pass.open(batch, {.training = false});
  (void)stage().forward(pass, {});
  ASSERT_EQ(pass.losses().size(), 1U);
  const auto losses = numbers(pass.losses()[0].terms);
  const auto expected = read<float>(probe_, "losses");
  const auto counts = probed("loss_mask");
  int seen = 0;
  for (std::size_t at = 0; at < counts.size(); ++at) {
    const std::size_t row = at / decoder_length, i = at % decoder_length;
    EXPECT_NEAR(losses[i * 2 + row], counts[at] == 1 ? expected[at] : 0, 1e-5);
    seen += counts[at];
  }
  EXPECT_EQ(seen, 28);
  expect_loss(golden.run()["probe"]);
}

TEST_F(GoldenT5, has_megatrons_gradients) {
  const Batch batch = probe();
  Pass pass;
  pass.open(batch, {.seed = 1, .step = 1, .factors = {.token = 1 / 28.0F}});
  (void)stage().forward(pass, {});
  (void)stage().backward(pass, {});
  golden.expect_gradients(stage(), is_noise);
}

TEST_F(GoldenT5, trains_for_twenty_steps_as_megatron_does) {
  const checkpoint::TensorFile data(golden.file("data.safetensors"));
  const nlohmann::json said = golden.run();
  for (std::int64_t step = 1; step <= 20; ++step) {
    const nlohmann::json& expected = said["steps"][std::size_t(step - 1)];
    const double rate = expected["lr"];
    const std::vector<Batch> batches{batch_of(*device_, data, 4 * step - 4),
                                     batch_of(*device_, data, 4 * step - 2)};
    const StepReport report = replica_.step(
        batches, {.seed = 1, .step = step, .rate = rate, .ends_rate = rate, .decay = 0.1, .clip = 3.0});
    // Adam turns rounding into steps wherever a gradient is nearly zero: of itself, as Megatron is compared
    // with its own layouts. The greatest difference was 2.8e-6.
    const double loss = expected["lm loss"];
    EXPECT_NEAR(report.losses[0], loss, 1e-5 * loss) << "step " << step;
    EXPECT_NEAR(report.grad_norm, double(expected["grad_norm"]), 1e-4) << "step " << step;
  }
  expect_loss(said["probe_after_20"]);
}
