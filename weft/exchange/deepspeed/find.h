// Where DeepSpeed's save_checkpoint put a step, and which of its files is whose.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

namespace weft::exchange::deepspeed {

struct Step {
  std::filesystem::path directory;
  bool universal = false;  // a file for each tensor, as ds_to_universal writes them
};
/// What a person means by a directory: a step's files, or the root that names a step. None where it holds
/// nothing of DeepSpeed's. Fails with Kind::data where it names a step that is not there.
std::optional<Step> find_step(const std::filesystem::path& directory);

struct Files {
  std::filesystem::path model;                   // what the first rank knows of the model
  std::vector<std::filesystem::path> optimizer;  // by data-parallel rank; empty: there are none
};
/// Fails with Kind::data, saying what to do, where a step was cut in a way that weft does not read, or lacks
/// a file.
Files files_of(const Step& step);

/// The config.json that says what the model is: the one given (a file or its directory), or the nearest
/// beside the step or above it.
std::filesystem::path find_config(const std::filesystem::path& directory, const Step& step,
                                  const std::filesystem::path& given);

}  // namespace weft::exchange::deepspeed
