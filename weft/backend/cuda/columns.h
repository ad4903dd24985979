// Sums of columns in two steps: slabs of rows each into a line of its own, then the lines in order.
#pragma once

#include "weft/backend/cuda/rows.h"

namespace weft::cuda {

/// total[h] += sum over slabs of partial[slab, h]
struct Slabs {
  Rows total;
  const float* partial;
  int slabs;
};
void add_slabs(cudaStream_t stream, const Slabs& job);

/// As many as keep a large GPU busy, and no more than there are rows for; they follow from the shape alone,
/// so that every GPU adds in the same order.
inline int slabs_for(std::int64_t rows, int rows_at_once) {
  const std::int64_t most = (rows + rows_at_once - 1) / rows_at_once;
  return int(most < 64 ? most : 64);
}

}  // namespace weft::cuda
