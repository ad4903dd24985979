// weft checkpoint diff and prune.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "weft/cli/verb.h"

namespace weft::cli {

/// What differs between two steps: tensors, by how much, and facts. Exit status 1 where anything does.
int diff_checkpoints(Args args);
/// Deletes the steps that no rule keeps.
int prune_checkpoints(Args args);

/// A root stands for its newest complete step; what is passed over is said.
std::filesystem::path step_in(const std::filesystem::path& directory);
/// Fails, naming the word of `weft checkpoint`, unless it is a directory.
std::filesystem::path directory_of(std::string_view sub, const std::string& given);

}  // namespace weft::cli
