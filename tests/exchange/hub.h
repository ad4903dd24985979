// Model directories of transformers that lie in the tests, and models made from them.
#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/source_dir.h"
#include "tests/support/tiny.h"
#include "weft/exchange/hub_weights.h"
#include "weft/generate/logits.h"

namespace weft::testing {

constexpr const char* hub_models[] = {"gpt2",
                                      "mamba2",
                                      "bamba",
                                      "granitemoehybrid",
                                      "granitemoehybrid_dense",
                                      "gpt_bigcode",
                                      "gpt_bigcode_heads",
                                      "gpt_neo",
                                      "opt",
                                      "opt_unbiased",
                                      "gpt_neox",
                                      "gpt_neox_serial",
                                      "gptj",
                                      "phi",
                                      "falcon",
                                      "falcon_grouped",
                                      "falcon_serial",
                                      "cohere",
                                      "cohere2",
                                      "bloom",
                                      "mpt",
                                      "falcon_falling",
                                      "stablelm",
                                      "stablelm_beside",
                                      "starcoder2",
                                      "nemotron",
                                      "llama2",
                                      "llama3",
                                      "mistral",
                                      "qwen2",
                                      "qwen2_window",
                                      "qwen3",
                                      "gemma",
                                      "phi3",
                                      "smollm3",
                                      "phi3_long",
                                      "llama4_text",
                                      "llama4_long",
                                      "gemma2",
                                      "olmo2",
                                      "olmo3",
                                      "exaone4",
                                      "exaone4_full",
                                      "gemma3_text",
                                      "gemma3",
                                      "glm4",
                                      "granite",
                                      "glm",
                                      "arcee",
                                      "seed_oss",
                                      "ernie4_5",
                                      "dots1",
                                      "minimax_m2",
                                      "ministral3",
                                      "mixtral",
                                      "qwen2_moe",
                                      "qwen3_moe",
                                      "olmoe",
                                      "glm4_moe",
                                      "deepseek_v3",
                                      "deepseek_v3_coded",
                                      "glm4_moe_lite",
                                      "deepseek_v2",
                                      "bert",
                                      "megatron_bert",
                                      "t5",
                                      "t5_gated",
                                      "roberta",
                                      "xlm_roberta",
                                      "mt5",
                                      "bert_words",
                                      "megatron_bert_words",
                                      "bert_untied",
                                      "t5_gated_tied",
                                      "t5_untied",
                                      "gpt_oss",
                                      "gpt_oss_packed",
                                      "qwen3_next",
                                      "qwen3_5",
                                      "qwen3_5_moe",
                                      "qwen3_5_seeing",
                                      "qwen3_5_moe_seeing",
                                      "mistral3",
                                      "nemotron_h",
                                      "nemotron_h_latent",
                                      "cohere_each",
                                      "cohere2_biased",
                                      "stablelm_each",
                                      "olmo",
                                      "mpt_limited",
                                      "llama_stretched",
                                      "qwen3_biased",
                                      "qwen3_moe_biased",
                                      "qwen3_next_dense",
                                      "granitemoe",
                                      "granitemoeshared",
                                      "hunyuan_v1_dense",
                                      "hunyuan_v1_moe"};

inline std::filesystem::path hub_model(const std::string& name) {
  return std::filesystem::path(WEFT_SOURCE_DIR) / "tests/golden/exchange" / name;
}

struct Expected {
  std::vector<std::int32_t> prompt;
  std::vector<float> logits;
  std::vector<std::int32_t> source = {};  // what an encoder reads
  std::vector<float> order = {};          // whether two sentences were swapped: two logits
};
inline Expected expected_of(const std::filesystem::path& directory) {
  std::ifstream file(directory / "logits.json");
  const auto all = nlohmann::json::parse(file);
  Expected out{all["prompt"].get<std::vector<std::int32_t>>(), {}};
  for (const auto& row : all["logits"])
    for (const auto& value : row) out.logits.push_back(value.get<float>());
  if (all.contains("source")) out.source = all["source"].get<std::vector<std::int32_t>>();
  if (all.contains("order")) out.order = all["order"].get<std::vector<float>>();
  return out;
}

/// A model that only reads its weights, on `world`.
class ReadModel {
 public:
  ReadModel(const ModelConfig& config, Communicator& world)
      : config_(config),
        world_(world),
        stages_(whole_model(config_, world, *device_)),
        weights_([this](const VisitParameter& visit) { stages_.at(0).each_parameter(visit); }, *device_,
                 Dtype::f32, Weights::For::reading) {}
  std::vector<checkpoint::Named> named() {
    std::vector<checkpoint::Named> out;
    stages_.at(0).each_parameter([&](Parameter& p) { out.push_back({p.name, p.value, p.pieces}); });
    return out;
  }
  std::vector<float> logits(std::span<const std::int32_t> prompt, std::span<const std::int32_t> source = {}) {
    return TextReader({stages_, config_, {world_}, *device_}).logits(prompt, std::ssize(prompt), source);
  }
  const Stage& stage() const { return stages_.at(0); }
  const ModelConfig& config() const { return config_; }
  Device& device() { return *device_; }

 private:
  std::unique_ptr<Device> device_ = open_device("cpu", {.threads = 1});
  ModelConfig config_;
  Communicator& world_;
  std::map<int, Stage> stages_;
  Weights weights_;
};

/// The largest difference, as a part of the largest expected value.
inline double difference(const std::vector<float>& found, const std::vector<float>& expected) {
  if (found.size() != expected.size()) return 1;
  double worst = 0, greatest = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    worst = std::max(worst, std::abs(double(found[i]) - expected[i]));
    greatest = std::max(greatest, std::abs(double(expected[i])));
  }
  return worst / greatest;
}

}  // namespace weft::testing
