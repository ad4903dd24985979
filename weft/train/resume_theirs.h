// Another program's directory as what a run starts from: its weights, its settings, its tokenizer.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/optim/weights.h"
#include "weft/train/config.h"

namespace weft {

/// Every rank calls it. Fills masters and values; fails where `model` would compute something else from the
/// same weights. Returns what should be said once.
std::vector<std::string> load_their_weights(const std::filesystem::path& directory, const ModelConfig& model,
                                            Weights& weights, Communicator& world);

/// The model's settings and, if asked, the tokenizer's: what config.json and the files beside it say, or
/// Megatron's args. The length of a sequence is the run's own where no run is spoken of.
std::string settings_of_theirs(const std::filesystem::path& directory, bool tokenizer_too);

/// The files of a tokenizer in a directory as settings; nothing set where it holds none.
TokenizerConfig tokenizer_in(const std::filesystem::path& directory);

}  // namespace weft
