// config.json of a Hugging Face model directory: a family's words for a ModelConfig, read and written.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/exchange/fp8_blocks.h"
#include "weft/exchange/hub_tensors.h"
#include "weft/model/config.h"
#include "weft/tensor/dtype.h"

namespace weft::exchange {

struct HubConfig {
  std::string type;         // "model_type": how tensors are called and which settings go without saying
  std::string around = {};  // "model_type" of what this is the text of; empty: it stands alone
  ModelConfig model;        // complete; f32, and a sequence is as long as positions go
  Dtype dtype = Dtype::f32;
  std::optional<CodeBlocks> blocks = {};  // of weights in eight bits
  std::vector<std::int32_t> ends;         // "eos_token_id"
  std::optional<std::int32_t> start;      // "decoder_start_token_id", of two stacks
  std::vector<std::string> notices;       // settings that weft does not know and passes over
};

/// Fails with Kind::data, naming `who` and the setting, on what is no such file or describes a model that
/// weft cannot compute.
HubConfig hub_config_from_json(std::string_view json, const std::string& who);
/// What the tensors beside a config.json know better than it does. They are asked for where it matters.
void settle(HubConfig& config, const std::function<const HubSource&()>& tensors);
HubConfig read_hub_config(const std::filesystem::path& directory);

/// By what names tensors of its text go; null: by their own.
TextName text_name(const HubConfig& config);

/// Whether a directory is Hugging Face's: it has a config.json and no step of a weft checkpoint.
bool is_hub_directory(const std::filesystem::path& directory);

inline constexpr const char* generation_file = "generation_config.json";

/// What else config.json says, for programs that read it.
struct HubTokens {
  std::optional<std::int32_t> begin, end, pad, start = {};
  std::vector<std::int32_t> ends = {};  // where several end a text
  std::string generation = {};          // generation_config.json of the model before; empty: it had none
};

/// The type that has all of a model's features. Fails with Kind::usage, saying which one none has.
std::string_view type_for(const ModelConfig& model);
std::string hub_config_json(const ModelConfig& model, Dtype dtype, const HubTokens& tokens);
std::string generation_config_json(const HubTokens& tokens);

/// The first setting by which two models of one family would compute something else from the same weights.
/// Dropout, precision, the beginnings of weights and the length of a sequence may differ.
struct Disagreement {
  std::string path, run, theirs;
};
std::optional<Disagreement> disagreement(const ModelConfig& run, const ModelConfig& theirs);

/// Fails with Kind::usage where there is one, or they are of two families: the setting is named.
/// `who` begins the sentence: what says of their model what it is.
void must_agree(const ModelConfig& run, const ModelConfig& theirs, const std::string& who);

}  // namespace weft::exchange
