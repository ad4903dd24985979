// A Hugging Face model directory from weights under our names, one tensor in memory at a time.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "weft/checkpoint/step.h"
#include "weft/exchange/hub_parts.h"
#include "weft/exchange/recipe.h"

namespace weft::exchange {

struct HubExport {
  Dtype dtype = Dtype::f32;
  std::int64_t shard_bytes = 5'000'000'000;  // files are not larger, but for a single tensor that is
  HubTokens tokens;
};

/// Fails with Kind::usage where the directory holds a model already.
void must_be_free(const std::filesystem::path& directory);

struct Written {
  std::int64_t tensors = 0, bytes = 0, files = 0;
};
/// Makes config.json, generation_config.json, and model.safetensors or its shards with their index; the
/// configuration comes last, so that a directory without one is unfinished. Fails with Kind::usage where the
/// directory holds a model already, or no family has what the model has.
Written write_hub(const std::filesystem::path& directory, const ModelConfig& model, const ReadWeight& read,
                  const HubExport& how);

/// Copies the files of a directory that a tokenizer is read from; returns the names.
std::vector<std::string> copy_tokenizer(const std::filesystem::path& from,
                                        const std::filesystem::path& directory);

/// Reads the weights of a step, block by block.
class StepWeights {
 public:
  explicit StepWeights(const std::filesystem::path& step) : step_(step) {}
  const checkpoint::OpenStep& step() const { return step_; }
  /// Fails with Kind::usage where the step holds no such tensor, or one of another shape.
  std::vector<float> read(const Recipe& recipe);

 private:
  checkpoint::OpenStep step_;
};

}  // namespace weft::exchange
