#include "weft/nn/token_drop.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace weft {

bool TokenDrop::at(int layer) const { return std::ranges::count(layers, layer) > 0; }

std::int64_t tokens_kept(const TokenDrop& drop, std::int64_t step, std::int64_t length) {
  const double part = double(step - 1) / double(drop.steps);
  const double grown = std::floor(part * double(drop.most - drop.least) + double(drop.least));
  const auto tokens = std::int64_t(std::min(grown, double(drop.most + drop.multiple)));
  return std::min({tokens - tokens % drop.multiple, drop.most, length});
}

// The places of the least words; of equal words the earlier one.
std::vector<std::int32_t> drawn_places(const Address& at, std::int64_t length, std::int64_t count) {
  const Draw draw(at);
  std::vector<std::uint32_t> words;
  for (std::int64_t i = 0; i < length; ++i) words.push_back(draw.word(std::uint64_t(i)));
  std::vector<std::int32_t> places(std::size_t(length), 0);
  std::iota(places.begin(), places.end(), 0);
  const auto end = places.begin() + count;
  std::nth_element(places.begin(), end, places.end(), [&](std::int32_t a, std::int32_t b) {
    return std::pair(words[std::size_t(a)], a) < std::pair(words[std::size_t(b)], b);
  });
  places.erase(end, places.end());
  std::ranges::sort(places);
  return places;
}

}  // namespace weft
