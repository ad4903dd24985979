// A run of a parameter's memory, as boxes of the tensor that nobody holds whole.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weft/mesh/shard.h"

namespace weft {

/// The elements [from, from + count) of the memory that `pieces` fill, as pieces with the same `at`: at most
/// three boxes of each matrix, a part of a row before and after whole rows. The run may reach beyond the
/// memory.
std::vector<Piece> fragments(std::span<const Piece> pieces, std::int64_t from, std::int64_t count);

}  // namespace weft
