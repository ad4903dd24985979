// How many queries a tile of attention's scores has: two products' depth of them, when they are summed over.
#pragma once

#include "weft/backend/cpu/fast/attention_job.h"

namespace weft::fast::WEFT_ISA {

inline constexpr std::int64_t tile_queries = attention_queries;

}  // namespace weft::fast::WEFT_ISA
