// How each of our tensors is made of a Hugging Face model's, whatever its family.
#pragma once

#include <vector>

#include "weft/exchange/hub_config.h"
#include "weft/model/hub.h"

namespace weft::exchange {

using weft::Recipe;
using weft::RowRun;
using weft::Theirs;

/// Every tensor of the model, in the order of its layers.
std::vector<Recipe> recipes(std::string_view type, const ModelConfig& model);

}  // namespace weft::exchange
