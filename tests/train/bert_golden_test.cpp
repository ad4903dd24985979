// A BERT's numbers against Megatron's: tests/golden/encoders says how they were made.
#include <array>

#include "tests/train/golden_encoder.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr std::int64_t sequence = 32, heads = 4, channels = 12;

ModelConfig golden_bert() {
  ModelConfig config;
  config.kind = "bert";
  config.layers = 2;
  config.hidden = heads * channels;
  config.heads = heads;
  config.sequence = config.max_positions = sequence;
  config.vocabulary = 128;
  config.activation = Activation::gelu;
  config.hidden_dropout = config.attention_dropout = 0;
  complete(config);
  return config;
}

/// Our names and Megatron's.
constexpr GoldenEncoder::Spelling spelling[] = {
    {"embedding.words", "embedding.word_embeddings.weight"},
    {"embedding.positions", "embedding.position_embeddings.weight"},
    {"embedding.types", "embedding.tokentype_embeddings.weight"},
    {"layers.", "encoder.layers."},
    {"attention_norm", "input_layernorm"},
    {"attention.qkv", "self_attention.linear_qkv"},
    {"attention.project", "self_attention.linear_proj"},
    {"mlp_norm", "pre_mlp_layernorm"},
    {"mlp.up", "mlp.linear_fc1"},
    {"mlp.down", "mlp.linear_fc2"},
    {"final_norm", "encoder.final_layernorm"},
    {"transform.norm", "lm_head.layer_norm"},
    {"transform.", "lm_head.dense."},
    {"pooler.", "pooler.dense."},
    {"sentence_order", "binary_head"},
    {"output.bias", "output_layer.bias"},
    {".gain", ".weight"}};
const GoldenEncoder golden{"encoders/bert_sop", spelling};

Batch batch_of(Device& device, const checkpoint::TensorFile& file, std::int64_t first) {
  const GoldenPair pair(device, file, first);
  Batch batch;
  batch.text = pair.sequences("text", "padding_mask", sequence);
  batch.text.types = pair.turned<std::int32_t>("types", sequence);
  batch.targets = pair.turned<std::int32_t>("labels", sequence);
  batch.mask = pair.turned<float>("loss_mask", sequence);
  batch.sentence_order = from_host(device, {2}, pair.rows("is_random", 1));
  batch.sentence_mask = from_host(device, {2}, std::vector<float>{1, 1});
  batch.samples = pair.samples();
  return batch;
}

class GoldenBert : public ::testing::Test {
 protected:
  GoldenBert() { golden.set_weights(replica_.weights()); }
  const Stage& stage() const { return replica_.stages().at(0); }
  Batch probe() const { return batch_of(*device_, probe_, 0); }
  void expect_losses(const nlohmann::json& expected, const std::array<double, 2>& within) {
    Evaluation sums;
    const std::vector<Batch> batches{probe()};
    replica_.evaluate(batches, sums);
    EXPECT_NEAR(sums[0].mean(), double(expected["lm loss"]), within[0]);
    EXPECT_NEAR(sums[1].mean(), double(expected["sop loss"]), within[1]);
  }

  std::unique_ptr<Device> device_ = open_device("cpu", {.threads = 1});
  SoloCommunicator solo_;
  ProcessMesh mesh_{ParallelLayout({}), solo_};
  Replica replica_{{.model = golden_bert(), .optimizer = {.beta2 = 0.95}}, {*device_, mesh_}};
  checkpoint::TensorFile probe_{golden.file("probe.safetensors")};
};

/// The key part of a bias moves no score against another: its gradient is zero, and what is computed is
/// noise.
bool is_noise(const std::string& name, std::size_t i) {
  return name.ends_with("attention.qkv.bias") && i / std::size_t(channels) % 3 == 1;
}

}  // namespace

TEST_F(GoldenBert, has_megatrons_logits) {
  const Batch batch = probe();
  Pass pass;
  pass.open(batch, {.training = false, .logits_from = 0, .logits_count = sequence});
  (void)stage().forward(pass, {});
  const auto logits = numbers(pass.logits());
  const auto expected = read<float>(probe_, "logits");
  const auto there = GoldenPair(*device_, probe_, 0).rows("padding_mask", sequence);
  for (std::int64_t row = 0; row < 2; ++row)
    for (std::int64_t i = 0; i < sequence; ++i) {
      if (there[std::size_t(row * sequence + i)] == 0) continue;  // what padding says means nothing
      for (std::int64_t word = 0; word < 128; ++word)
        ASSERT_NEAR(logits[std::size_t((i * 2 + row) * 128 + word)],
                    expected[std::size_t((row * sequence + i) * 128 + word)], 1e-5)
            << row << " " << i << " " << word;
    }
}

TEST_F(GoldenBert, has_megatrons_losses_of_every_hidden_word) {
  const Batch batch = probe();
  Pass pass;
  pass.open(batch, {.training = false});
  (void)stage().forward(pass, {});
  ASSERT_EQ(pass.losses().size(), 2U);
  EXPECT_EQ(pass.losses()[0].loss, 1);  // the order of sentences is measured first, and is the second by name
  const auto losses = numbers(pass.losses()[1].terms);
  const auto expected = read<float>(probe_, "losses");
  const auto hidden = GoldenPair(*device_, probe_, 0).rows("loss_mask", sequence);
  int seen = 0;
  for (std::size_t at = 0; at < hidden.size(); ++at) {
    const std::size_t row = at / sequence, i = at % sequence;
    EXPECT_NEAR(losses[i * 2 + row], hidden[at] == 1 ? expected[at] : 0, 1e-5);
    seen += hidden[at];
  }
  EXPECT_GT(seen, 4);
  expect_losses(golden.run()["probe"], {1e-5, 1e-5});
}

TEST_F(GoldenBert, has_megatrons_gradients) {
  const Batch batch = probe();
  float hidden = 0;
  for (const double counts : numbers(batch.mask)) hidden += float(counts);
  Pass pass;
  pass.open(batch, {.seed = 1, .step = 1, .factors = {.token = 1 / hidden, .sample = 0.5F}});
  (void)stage().forward(pass, {});
  (void)stage().backward(pass, {});
  golden.expect_gradients(stage(), is_noise);
}

TEST_F(GoldenBert, trains_for_twenty_steps_as_megatron_does) {
  const checkpoint::TensorFile data(golden.file("data.safetensors"));
  const nlohmann::json said = golden.run();
  for (std::int64_t step = 1; step <= 20; ++step) {
    const nlohmann::json& expected = said["steps"][std::size_t(step - 1)];
    const double rate = expected["lr"];
    const std::vector<Batch> batches{batch_of(*device_, data, 4 * step - 4),
                                     batch_of(*device_, data, 4 * step - 2)};
    const StepReport report = replica_.step(
        batches, {.seed = 1, .step = step, .rate = rate, .ends_rate = rate, .decay = 0.1, .clip = 6.0});
    const double words = expected["lm loss"], order = expected["sop loss"];
    EXPECT_NEAR(report.losses[0], words, 1e-5 * words) << "step " << step;
    EXPECT_NEAR(report.losses[1], order, 1e-5 * order) << "step " << step;
    EXPECT_NEAR(report.grad_norm, double(expected["grad_norm"]), 1e-4) << "step " << step;
  }
  const nlohmann::json& after = said["probe_after_20"];
  expect_losses(after, {1e-5 * double(after["lm loss"]), 1e-5 * double(after["sop loss"])});
}
