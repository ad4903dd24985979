// A T5's numbers against Megatron's: tests/golden/encoders says how they were made.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/source_dir.h"
#include "tests/support/tiny.h"
#include "weft/checkpoint/safetensors.h"
#include "weft/train/replica.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr std::int64_t encoder_length = 32, decoder_length = 24, heads = 4, channels = 12, vocabulary = 128;

std::string golden(const std::string& file) {
  return std::string(WEFT_SOURCE_DIR) + "/tests/golden/encoders/t5_learned/" + file;
}

template <class T>
std::vector<T> read(const checkpoint::TensorFile& file, const std::string& name) {
  const auto bytes = file.bytes(file.at(name));
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

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

/// Megatron's name of ours.
std::string their_name(std::string name) {
  const std::pair<const char*, const char*> spelled[] = {
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
  for (const auto& [ours, theirs] : spelled)
    if (const auto at = name.find(ours); at != std::string::npos) name.replace(at, std::strlen(ours), theirs);
  return name;
}

void set_weights(Weights& weights) {
  const checkpoint::TensorFile file(golden("weights.safetensors"));
  std::size_t found = 0;
  weights.each_master([&](const Held& held) {
    const std::vector<float> values = read<float>(file, their_name(held.name));
    ASSERT_EQ(std::size_t(held.pieces.front().where.global.elements()), values.size()) << held.name;
    const std::int64_t at = held.memory.offset() + held.pieces.front().at, size = sizeof(float);
    held.memory.device().copy_from_host(*held.memory.storage(), at * size, values.data(),
                                        std::ssize(values) * size);
    ++found;
  });
  weights.publish();
  EXPECT_EQ(found, file.header().entries.size());
}

/// Two samples, from the sample `first` of the file on.
class GoldenPair {
 public:
  GoldenPair(Device& device, const checkpoint::TensorFile& file, std::int64_t first)
      : device_(device), file_(file), first_(first) {}

  Batch batch() const {
    Batch batch;
    batch.source = sequences("text_enc", "enc_mask", encoder_length);
    batch.text = sequences("text_dec", "dec_mask", decoder_length);
    batch.targets = turned<std::int32_t>("labels", decoder_length);
    batch.mask = turned<float>("loss_mask", decoder_length);
    batch.samples = from_host(device_, {2}, std::vector<std::int64_t>{first_, first_ + 1});
    return batch;
  }
  std::vector<std::int32_t> rows(const std::string& name, std::int64_t length) const {
    const auto all = read<std::int32_t>(file_, name);
    const auto begin = all.begin() + std::ptrdiff_t(first_ * length);
    return {begin, begin + std::ptrdiff_t(2 * length)};
  }

 private:
  Sequences sequences(const std::string& tokens, const std::string& mask, std::int64_t length) const {
    std::vector<std::int32_t> places, positions, there;
    for (std::int64_t i = 0; i < length; ++i) {
      places.push_back(std::int32_t(i));
      positions.insert(positions.end(), 2, std::int32_t(i));
    }
    for (const std::int32_t real : rows(mask, length)) there.push_back(real == 1 ? 0 : -1);
    return {.tokens = turned<std::int32_t>(tokens, length),
            .places = from_host(device_, {length}, places),
            .positions = from_host(device_, {length, 2}, positions),
            .types = {},
            .documents = from_host(device_, {2, length}, there)};
  }
  template <class T>
  Tensor turned(const std::string& name, std::int64_t length) const {
    const auto from = rows(name, length);
    std::vector<T> out;
    for (std::int64_t i = 0; i < length; ++i)
      for (std::int64_t row = 0; row < 2; ++row) out.push_back(T(from[std::size_t(row * length + i)]));
    return from_host(device_, {length, 2}, out);
  }
  Device& device_;
  const checkpoint::TensorFile& file_;
  std::int64_t first_;
};

class GoldenT5 : public ::testing::Test {
 protected:
  GoldenT5() { set_weights(replica_.weights()); }
  const Stage& stage() const { return replica_.stages().at(0); }
  GoldenPair pair() const { return {*device_, probe_, 0}; }
  static nlohmann::json run() { return nlohmann::json::parse(std::ifstream(golden("run.json"))); }
  void expect_loss(const nlohmann::json& expected) {
    Evaluation sums;
    const std::vector<Batch> batches{pair().batch()};
    replica_.evaluate(batches, sums);
    EXPECT_NEAR(sums[0].mean(), double(expected["lm loss"]), 1e-5);
  }

  std::unique_ptr<Device> device_ = open_device("cpu", {.threads = 1});
  SoloCommunicator solo_;
  ProcessMesh mesh_{ParallelLayout({}), solo_};
  Replica replica_{{.model = golden_t5(), .optimizer = {.beta2 = 0.95}}, {*device_, mesh_}};
  checkpoint::TensorFile probe_{golden("probe.safetensors")};
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
  const Batch batch = pair().batch();
  Pass pass;
  pass.open(batch, {.training = false, .logits_from = 0, .logits_count = decoder_length});
  (void)stage().forward(pass, {});
  const auto logits = numbers(pass.logits());
  const auto expected = read<float>(probe_, "logits");
  const auto there = pair().rows("dec_mask", decoder_length);
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
  const Batch batch = pair().batch();
  Pass pass;
  pass.open(batch, {.training = false});
  (void)stage().forward(pass, {});
  ASSERT_EQ(pass.losses().size(), 1U);
  const auto losses = numbers(pass.losses()[0].terms);
  const auto expected = read<float>(probe_, "losses");
  const auto counts = pair().rows("loss_mask", decoder_length);
  int seen = 0;
  for (std::size_t at = 0; at < counts.size(); ++at) {
    const std::size_t row = at / decoder_length, i = at % decoder_length;
    EXPECT_NEAR(losses[i * 2 + row], counts[at] == 1 ? expected[at] : 0, 1e-5);
    seen += counts[at];
  }
  EXPECT_EQ(seen, 28);
  expect_loss(run()["probe"]);
}

TEST_F(GoldenT5, has_megatrons_gradients) {
  const Batch batch = pair().batch();
  Pass pass;
  pass.open(batch, {.seed = 1, .step = 1, .factors = {.token = 1 / 28.0F}});
  (void)stage().forward(pass, {});
  (void)stage().backward(pass, {});
  const checkpoint::TensorFile file(golden("probe_grads.safetensors"));
  stage().each_parameter([&](const Parameter& p) {
    const auto expected = read<float>(file, their_name(p.name));
    const auto grad = numbers(p.grad.sum());
    double greatest = 0;
    for (const float value : expected) greatest = std::max(greatest, std::abs(double(value)));
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(grad[i], expected[i], is_noise(p.name, i) ? 1e-6 : 1e-5 * greatest) << p.name << " " << i;
  });
}

TEST_F(GoldenT5, trains_for_twenty_steps_as_megatron_does) {
  const checkpoint::TensorFile data(golden("data.safetensors"));
  const nlohmann::json said = run();
  for (std::int64_t step = 1; step <= 20; ++step) {
    const nlohmann::json& expected = said["steps"][std::size_t(step - 1)];
    const double rate = expected["lr"];
    const std::vector<Batch> batches{GoldenPair(*device_, data, 4 * step - 4).batch(),
                                     GoldenPair(*device_, data, 4 * step - 2).batch()};
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
