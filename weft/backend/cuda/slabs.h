// How many slabs rows are cut into where columns are added up (columns.h).
#pragma once

#include <algorithm>
#include <cstdint>

namespace weft::cuda {

// So many slabs that their blocks keep a large GPU busy, and no more than there are rows for; they follow
// from the shape alone, so that every GPU adds in the same order.
/// Where a block takes whole rows, one at a time: long rows' lines must not become most of the work.
inline int slabs_of_whole_rows(std::int64_t rows, std::int64_t width) {
  return int(std::min(rows, std::clamp<std::int64_t>((1 << 21) / width, 64, 1024)));
}
/// What exact mode, whose ranks may share columns, takes for their width.
inline constexpr std::int64_t width_of_any = 2048;
/// Where a block takes 256 columns of eight rows at a time.
inline int slabs_of_columns(std::int64_t rows, std::int64_t width) {
  const std::int64_t across = (width + 255) / 256;
  return int(std::min((rows + 7) / 8, std::max<std::int64_t>(512 / across, 32)));
}

}  // namespace weft::cuda
