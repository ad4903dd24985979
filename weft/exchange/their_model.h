// Models of other programs, whichever program wrote a directory.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/exchange/hub_config.h"
#include "weft/exchange/their_weights.h"
#include "weft/model/config.h"

namespace weft::exchange {

enum class Program : std::uint8_t { hugging_face, megatron, deepspeed, llama_cpp };
/// "Megatron's"
std::string_view whose(Program program);

/// Whose model a directory holds, or a file is; none: it holds steps of weft, or nothing. Fails with
/// Kind::data where a directory of Megatron's or DeepSpeed's names a step that is not there.
std::optional<Program> program_of(const std::filesystem::path& directory);

/// A run that may go on where it stood: every tensor has the two moments of Adam.
struct TheirRun {
  std::int64_t step = 0, updates = 0;                     // taken, and of these applied
  std::int64_t consumed = 0, skipped = 0, validated = 0;  // samples
  std::optional<std::int64_t> seed;                       // none: nothing says it
  std::int64_t batch = 0, micro_batch = 0;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.01, clip = 1;
  /// To be called before anything of it is opened, where a look at its numbers must tell what they are of.
  /// What is returned says why the run cannot go on; it is empty where it can.
  std::function<std::string()> settle = {};
  /// By the names that checkpoints of weft have for them.
  std::function<std::vector<std::unique_ptr<TheirWeights>>()> open_states;
};

struct TheirModel {
  Program program = Program::hugging_face;
  ModelConfig model;                  // complete; f32
  std::optional<HubConfig> hub = {};  // where a config.json says what the model is
  std::string says;                   // what says what the model is, for messages
  std::filesystem::path tokenizer;    // where its files would lie
  std::vector<std::string> notices;   // to be said once
  /// Its weights, every one accounted for.
  std::function<std::unique_ptr<TheirWeights>()> open;
  std::optional<TheirRun> run = {};
};

/// What a person may say of a directory besides its name.
struct ToldOfTheirs {
  std::optional<Program> program = {};  // whose files are meant where there are two programs'
  std::filesystem::path config = {};    // of DeepSpeed's: the config.json, where it does not lie near
};
TheirModel read_theirs(const std::filesystem::path& directory, const ToldOfTheirs& told = {});

/// Every rank of `world` calls it, for the model that a run has built: its settings must be those of the
/// directory. Returns what should be said once.
std::vector<std::string> load_their_model(const std::filesystem::path& directory, const ModelConfig& run,
                                          std::span<const checkpoint::Named> mine, Communicator& world);

}  // namespace weft::exchange
