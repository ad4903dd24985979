// How many queries a tile of attention's scores has, where products are made in vector registers: whole tiles
// of 24, 12, 8 and 6 rows (gemm_tile.h). A set that multiplies otherwise has a file of this name of its own,
// which is found first.
#pragma once

#include "weft/backend/cpu/fast/attention_job.h"

namespace weft::fast::WEFT_ISA {

inline constexpr std::int64_t tile_queries = attention_narrow_queries;

}  // namespace weft::fast::WEFT_ISA
