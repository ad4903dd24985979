// Everything that a value holds, looked at once.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "weft/exchange/torch/value.h"

namespace weft::fuzz {

/// Calls see(tensor) for every tensor. A value deeper than the reader promises ends the program.
template <class See>
void walk(const exchange::torch::Value& value, const See& see, int depth = 0) {
  if (depth > 101 || value.kind().empty()) std::abort();
  if (const auto* list = value.list())
    for (const auto& item : *list) walk(item, see, depth + 1);
  if (const auto* named = value.named())
    for (const auto& item : named->arguments) walk(item, see, depth + 1);
  if (const auto* map = value.map()) {
    for (const auto& [key, held] : map->entries) {
      walk(key, see, depth + 1);
      walk(held, see, depth + 1);
    }
  }
  if (const auto* tensor = value.tensor()) see(*tensor);
}

}  // namespace weft::fuzz
