// A run's tokenizer in its checkpoints: the files go along, and stand in where the first ones are gone.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "weft/checkpoint/save.h"
#include "weft/train/save_facts.h"

namespace weft {

/// The contents of the files that the fact names, and of what belongs to a tokenizer.json, to lie beside
/// every checkpoint; their names there become fact.copies.
std::vector<checkpoint::Attached> keep_tokenizer(RunTokenizer& fact);

/// Where a file of `tokenizer` is gone and the step holds a copy of it, the copy takes its place. Returns
/// what is to be said. Fails with Kind::data where the copy is damaged.
std::vector<std::string> take_kept_tokenizer(const std::filesystem::path& step, TokenizerConfig& tokenizer);

}  // namespace weft
