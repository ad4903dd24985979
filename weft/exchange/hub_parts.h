// Hugging Face's tensors out of ours: what several of theirs are cut from is read once.
#pragma once

#include <functional>
#include <vector>

#include "weft/exchange/recipe.h"

namespace weft::exchange {

/// The whole of one of our tensors, row by row.
using ReadWeight = std::function<std::vector<float>(const Recipe&)>;

/// Holds the last of our tensors: the parts of one recipe follow one another.
class HubParts {
 public:
  explicit HubParts(const ReadWeight& read) : read_(read) {}
  /// Their elements in their order; of a slab, those of the slab. The recipe must outlive this.
  std::vector<float> values(const Recipe& recipe, std::size_t part);

 private:
  const ReadWeight& read_;
  const Recipe* recipe_ = nullptr;
  std::vector<float> ours_;
};

}  // namespace weft::exchange
