// What Megatron-LM's arguments would be for a model of ours.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "weft/exchange/torch/value.h"
#include "weft/model/config.h"
#include "weft/tensor/dtype.h"

namespace weft::exchange::megatron {

/// Rows of embeddings as Megatron pads them, where no ranks cut them.
std::int64_t padded_rows(const ModelConfig& model);

/// Those that say what the model is, of a run that has not begun. Fails with Kind::usage, naming the setting,
/// where Megatron's arguments cannot say what the model computes: they are read again, and must be it.
torch::Map arguments_of(const ModelConfig& model, Dtype dtype);

/// Of these, those that Megatron-LM's use of a checkpoint's arguments leaves out, and that are not what they
/// would be by default: by name, with what a command line says of each, "" where the name says all.
std::vector<std::pair<std::string, std::string>> left_out(const torch::Map& arguments);

}  // namespace weft::exchange::megatron
