// What stands some places on, for guesses of tokens beyond the next one.
#pragma once

#include <cstdint>

#include "weft/data/batch.h"

namespace weft::data {

struct LookAhead {
  int depths = 0;  // places
  /// No further than a document reaches, where samples tell; else than a sample does.
  bool in_documents = false;
};

/// Tokens, labels, what counts and positions so many places on; zeros behind the end. What `further` held is
/// gone, its memory used again.
void look_ahead(const HostBatch& batch, std::int64_t places, bool in_documents, HostBatch& further);

}  // namespace weft::data
