// Compiled without fused multiply-add, for normal_pair.h.
#include "weft/base/random.h"

#include <algorithm>
#include <cstddef>

#include "weft/base/normal_pair.h"

namespace weft {
namespace {

constexpr std::size_t blocks_at_once = 64;

using Words = std::array<std::uint32_t, 4 * blocks_at_once>;
using Floats = std::array<float, 4 * blocks_at_once>;

void words_of(const Draw& draw, std::uint64_t first_block, Words& out) {
  for (std::size_t i = 0; i < blocks_at_once; ++i) {
    const PhiloxCounter four = draw.block(first_block + i);
    for (std::size_t j = 0; j < 4; ++j) out[4 * i + j] = four[j];
  }
}

// Hands whole groups of blocks to `convert` and copies the elements that were asked for.
template <class Convert>
void fill(const Draw& draw, std::uint64_t first, std::span<float> out, const Convert& convert) {
  Words words;
  Floats numbers;
  std::uint64_t skip = first % 4;
  std::uint64_t block = first / 4;
  while (!out.empty()) {
    words_of(draw, block, words);
    convert(words, numbers);
    const std::size_t count = std::min<std::size_t>(out.size(), words.size() - skip);
    std::copy_n(numbers.begin() + static_cast<std::ptrdiff_t>(skip), count, out.begin());
    out = out.subspan(count);
    block += blocks_at_once;
    skip = 0;
  }
}

}  // namespace

float Draw::normal(std::uint64_t element) const {
  const PhiloxCounter four = block(element >> 2);
  const std::size_t even = element & 2;
  const NormalPair pair = normal_pair(four[even], four[even + 1]);
  return (element & 1) == 0 ? pair.first : pair.second;
}

void fill_uniform(const Draw& draw, std::uint64_t first, std::span<float> out) {
  fill(draw, first, out, [](const Words& words, Floats& numbers) {
    for (std::size_t i = 0; i < words.size(); ++i) numbers[i] = unit_float(words[i]);
  });
}

void fill_normal(const Draw& draw, std::uint64_t first, std::span<float> out) {
  fill(draw, first, out, [](const Words& words, Floats& numbers) {
    for (std::size_t i = 0; i < words.size(); i += 2) {
      const NormalPair pair = normal_pair(words[i], words[i + 1]);
      numbers[i] = pair.first;
      numbers[i + 1] = pair.second;
    }
  });
}

}  // namespace weft
