// A BERT's numbers against Megatron's: tests/golden/encoders says how they were made.
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

constexpr std::int64_t sequence = 32, heads = 4, channels = 12;

std::string golden(const std::string& file) {
  return std::string(WEFT_SOURCE_DIR) + "/tests/golden/encoders/bert_sop/" + file;
}

template <class T>
std::vector<T> read(const checkpoint::TensorFile& file, const std::string& name) {
  const auto bytes = file.bytes(file.at(name));
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

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

/// Megatron's name of ours.
std::string their_name(std::string name) {
  const std::pair<const char*, const char*> words[] = {
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
  for (const auto& [ours, theirs] : words)
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

/// Rows of two samples, from the sample `first` of the file on.
class GoldenBatch {
 public:
  GoldenBatch(Device& device, const checkpoint::TensorFile& file, std::int64_t first)
      : device_(device), file_(file), first_(first) {}

  Batch batch() const {
    std::vector<std::int32_t> places, positions, there;
    for (std::int64_t i = 0; i < sequence; ++i) {
      places.push_back(std::int32_t(i));
      positions.insert(positions.end(), 2, std::int32_t(i));
    }
    for (const std::int32_t real : rows("padding_mask")) there.push_back(real == 1 ? 0 : -1);
    Batch batch;
    batch.text = {.tokens = turned<std::int32_t>("text"),
                  .places = from_host(device_, {sequence}, places),
                  .positions = from_host(device_, {sequence, 2}, positions),
                  .types = turned<std::int32_t>("types"),
                  .documents = from_host(device_, {2, sequence}, there)};
    batch.targets = turned<std::int32_t>("labels");
    batch.mask = turned<float>("loss_mask");
    const auto all = read<std::int32_t>(file_, "is_random");
    const auto order = all.begin() + std::ptrdiff_t(first_);
    batch.sentence_order = from_host(device_, {2}, std::vector<std::int32_t>(order, order + 2));
    batch.sentence_mask = from_host(device_, {2}, std::vector<float>{1, 1});
    batch.samples = from_host(device_, {2}, std::vector<std::int64_t>{first_, first_ + 1});
    return batch;
  }
  std::vector<std::int32_t> rows(const std::string& name) const {
    const auto all = read<std::int32_t>(file_, name);
    const auto begin = all.begin() + std::ptrdiff_t(first_ * sequence);
    return {begin, begin + std::ptrdiff_t(2 * sequence)};
  }

 private:
  template <class T>
  Tensor turned(const std::string& name) const {
    const auto from = rows(name);
    std::vector<T> out;
    for (std::int64_t i = 0; i < sequence; ++i)
      for (std::int64_t row = 0; row < 2; ++row) out.push_back(T(from[std::size_t(row * sequence + i)]));
    return from_host(device_, {sequence, 2}, out);
  }
  Device& device_;
  const checkpoint::TensorFile& file_;
  std::int64_t first_;
};

class GoldenBert : public ::testing::Test {
 protected:
  GoldenBert() { set_weights(replica_.weights()); }
  const Stage& stage() const { return replica_.stages().at(0); }
  Batch probe() const { return GoldenBatch(*device_, probe_, 0).batch(); }
  static nlohmann::json run() { return nlohmann::json::parse(std::ifstream(golden("run.json"))); }
  void expect_losses(const nlohmann::json& expected) {
    Evaluation sums;
    const std::vector<Batch> batches{probe()};
    replica_.evaluate(batches, sums);
    const double words = expected["lm loss"], order = expected["sop loss"];
    EXPECT_NEAR(sums[0].mean(), words, 1e-5 * words);
    EXPECT_NEAR(sums[1].mean(), order, 1e-5 * order);
  }

  std::unique_ptr<Device> device_ = open_device("cpu", {.threads = 1});
  SoloCommunicator solo_;
  ProcessMesh mesh_{ParallelLayout({}), solo_};
  Replica replica_{{.model = golden_bert(), .optimizer = {.beta2 = 0.95}}, {*device_, mesh_}};
  checkpoint::TensorFile probe_{golden("probe.safetensors")};
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
  const auto there = GoldenBatch(*device_, probe_, 0).rows("padding_mask");
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
  const auto hidden = GoldenBatch(*device_, probe_, 0).rows("loss_mask");
  int seen = 0;
  for (std::size_t at = 0; at < hidden.size(); ++at) {
    const std::size_t row = at / sequence, i = at % sequence;
    EXPECT_NEAR(losses[i * 2 + row], hidden[at] == 1 ? expected[at] : 0, 1e-5);
    seen += hidden[at];
  }
  EXPECT_GT(seen, 4);
  expect_losses(run()["probe"]);
}

TEST_F(GoldenBert, has_megatrons_gradients) {
  const Batch batch = probe();
  float hidden = 0;
  for (const double counts : numbers(batch.mask)) hidden += float(counts);
  Pass pass;
  pass.open(batch, {.seed = 1, .step = 1, .factors = {.token = 1 / hidden, .sample = 0.5F}});
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

TEST_F(GoldenBert, trains_for_twenty_steps_as_megatron_does) {
  const checkpoint::TensorFile data(golden("data.safetensors"));
  const nlohmann::json said = run();
  for (std::int64_t step = 1; step <= 20; ++step) {
    const nlohmann::json& expected = said["steps"][std::size_t(step - 1)];
    const double rate = expected["lr"];
    const std::vector<Batch> batches{GoldenBatch(*device_, data, 4 * step - 4).batch(),
                                     GoldenBatch(*device_, data, 4 * step - 2).batch()};
    const StepReport report = replica_.step(
        batches, {.seed = 1, .step = step, .rate = rate, .ends_rate = rate, .decay = 0.1, .clip = 6.0});
    const double words = expected["lm loss"], order = expected["sop loss"];
    EXPECT_NEAR(report.losses[0], words, 1e-5 * words) << "step " << step;
    EXPECT_NEAR(report.losses[1], order, 1e-5 * order) << "step " << step;
    EXPECT_NEAR(report.grad_norm, double(expected["grad_norm"]), 1e-4) << "step " << step;
  }
  expect_losses(said["probe_after_20"]);
}
