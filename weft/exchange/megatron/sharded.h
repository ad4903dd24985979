#pragma once

#include <filesystem>

#include "weft/exchange/megatron/checkpoint.h"

namespace weft::exchange::megatron {

/// Each fills a checkpoint from a directory of its format.
void read_sharded(Checkpoint& into, const std::filesystem::path& directory);
void read_ranks(Checkpoint& into, const std::filesystem::path& directory);

}  // namespace weft::exchange::megatron
