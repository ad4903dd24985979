// Random layerwise token dropping: which tokens of a sample a layer sees, while others pass it by.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/base/random.h"

namespace weft {

/// The layers that see a part of the tokens (Yao and others: Random-LTD; 2022). How many a sample has there
/// grows along a line, as in DeepSpeed: in step k floor((k - 1) / steps (most - least) + least), rounded down
/// to a multiple, `most` at most; where a sample is no longer than that, all.
struct TokenDrop {
  std::vector<int> layers;  // empty: none
  std::int64_t least = 0, most = 0, steps = 0, multiple = 1;

  bool on() const { return !layers.empty(); }
  bool at(int layer) const;
};

std::int64_t tokens_kept(const TokenDrop& drop, std::int64_t step, std::int64_t length);
/// So many places of `length`, ascending; every choice is as likely. The address knows step, sample and
/// layer.
std::vector<std::int32_t> drawn_places(const Address& at, std::int64_t length, std::int64_t count);

}  // namespace weft
