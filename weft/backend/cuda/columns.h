// Sums of columns in two steps: slabs of rows each into a line of its own, then the lines in order.
#pragma once

#include "weft/backend/cuda/queue.h"
#include "weft/backend/cuda/rows.h"
#include "weft/backend/cuda/space.h"

namespace weft::cuda {

/// total[h] += sum over slabs of partial[slab, h]
struct Slabs {
  Rows total;
  const float* partial;
  int slabs;
};
void add_slabs(Queue& queue, const Slabs& job);

}  // namespace weft::cuda
