#include "weft/data/context_split.h"

#include "weft/base/error.h"

namespace weft::data {

std::int64_t place_of(std::int64_t i, std::int64_t steps, const ContextPart& part) {
  if (part.ranks == 1) return i;
  const std::int64_t size = steps / 2;
  const std::int64_t chunk = i < size ? part.rank : 2 * std::int64_t{part.ranks} - 1 - part.rank;
  return chunk * size + i % size;
}

void context_split(const HostBatch& batch, const ContextPart& part, HostBatch& mine) {
  mine.samples = batch.samples;
  for (std::size_t f = 0; f < num_fields; ++f) {
    const auto& rows = batch.rows[f];
    mine.rows[f].clear();
    if (rows.empty()) continue;
    const std::int64_t length = static_cast<std::int64_t>(rows.size()) / batch.size();
    if (length == 1 || part.ranks == 1) {
      mine.rows[f] = rows;
      continue;
    }
    const std::int64_t chunks = 2 * std::int64_t{part.ranks};
    if (length % chunks != 0) {
      fail(Kind::usage, "context parallelism: a sequence of ", length,
           " tokens is not a multiple of 2 times ", part.ranks, " ranks");
    }
    const std::int64_t size = length / chunks;
    for (std::int64_t row = 0; row < batch.size(); ++row) {
      for (const std::int64_t chunk : {std::int64_t{part.rank}, chunks - 1 - part.rank}) {
        const auto begin = rows.begin() + row * length + chunk * size;
        mine.rows[f].insert(mine.rows[f].end(), begin, begin + size);
      }
    }
  }
}

}  // namespace weft::data
