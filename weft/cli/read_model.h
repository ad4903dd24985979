// A model that a person names on the command line: a checkpoint of weft, a Hugging Face directory or a
// checkpoint of Megatron's or DeepSpeed's.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/comm/solo.h"
#include "weft/exchange/their_model.h"
#include "weft/generate/logits.h"
#include "weft/optim/weights.h"
#include "weft/train/config.h"

namespace weft::cli {

/// What a generation_config.json says beside config.json.
struct Generation {
  std::vector<std::int32_t> ends;  // "eos_token_id" of both: chat models often end an answer so
  std::optional<double> repetition_penalty;
  std::filesystem::path file;  // empty: there is none
};

struct NamedModel {
  std::filesystem::path path;                  // a step's directory, or another program's
  std::optional<exchange::TheirModel> theirs;  // of another program; none: a step of weft
  TrainConfig settings;                        // model and tokenizer
  Generation generation = {};
  std::vector<std::string> notices = {};  // to be said once
};
/// Fails with Kind::usage where there is no such directory, with Kind::data where it holds no model.
NamedModel find_model(const std::filesystem::path& directory, const exchange::ToldOfTheirs& told = {});

/// What is made for each place of a text is made for so many, not for all that the model knows; and angles
/// that are stretched where texts are long, as they are for such a text.
void read_no_longer(ModelConfig& config, std::int64_t tokens);

/// The whole model on one rank, only to be read.
class ReadModel {
 public:
  ReadModel(const NamedModel& named, Precision precision, Device& device);
  ModelHere here() { return {stages_, config_, {solo_}, device_}; }
  const ModelConfig& config() const { return config_; }
  Weights& weights() { return *weights_; }

 private:
  Device& device_;
  ModelConfig config_;
  SoloCommunicator solo_;
  std::map<int, Stage> stages_;  // one
  std::unique_ptr<Weights> weights_;
};

/// The type that a weight's numbers are rounded to before they are multiplied.
using Rounding = std::function<Dtype(const std::string& parameter)>;

/// The logits of every place of a text in f32. Embedding, layers and head are in memory one after the other,
/// so this needs room for the largest of them, however large the model is.
std::vector<float> logits_in_parts(const NamedModel& named, std::span<const std::int32_t> text,
                                   Device& device, const Rounding& rounding = {});

}  // namespace weft::cli
