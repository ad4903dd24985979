// Cuts a batch along the sequence for context parallelism, so that every rank has as much causal attention to
// do as the others.
#pragma once

#include <cstdint>

#include "weft/data/batch.h"

namespace weft::data {

struct ContextPart {
  int rank = 0, ranks = 1;
};

/// The sequence in 2·ranks chunks; rank c keeps chunks c and 2·ranks − 1 − c. Rows of a single number stay
/// whole. What `mine` held is gone, its memory used again.
void context_split(const HostBatch& batch, const ContextPart& part, HostBatch& mine);

/// Where step i of the `steps` that a rank holds stands in the whole sequence.
std::int64_t place_of(std::int64_t i, std::int64_t steps, const ContextPart& part);

}  // namespace weft::data
