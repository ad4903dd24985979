#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "weft/exchange/megatron/checkpoint.h"
#include "weft/exchange/megatron/items.h"

namespace weft::exchange::megatron {

/// Each fills a checkpoint from a directory of its format.
void read_sharded(Checkpoint& into, const std::filesystem::path& directory);
void read_ranks(Checkpoint& into, const std::filesystem::path& directory);

/// The updates that an optimizer's own dict has seen, one in another, or the first of several.
std::optional<std::int64_t> updates_in(const torch::Archive& archive, const torch::Value& optimizer);

}  // namespace weft::exchange::megatron
