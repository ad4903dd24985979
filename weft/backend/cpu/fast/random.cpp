// Random matrices by place: base/random.h makes the numbers, threads share the rows.
#include <algorithm>
#include <array>

#include "weft/backend/cpu/fast/kernels.h"
#include "weft/backend/cpu/fast/lines.h"
#include "weft/backend/cpu/fast/parallel.h"

namespace weft {

using fast::in_parallel;
using fast::Lines;
using fast::ready;

namespace {

using Numbers = std::array<float, 1024>;

struct Block {
  Lines rows;
  Draw draw;
  RandomBlock place;

  /// fill(first element, numbers) makes them, then they are stored as the tensor's type.
  template <class Fill>
  void run(const fast::Loops& loops, std::int64_t begin, std::int64_t end, const Fill& fill) const {
    Numbers numbers;
    for (std::int64_t i = begin; i < end; ++i) {
      const fast::Out row = rows.out(i);
      const std::int64_t size = size_of(row.type);
      for (std::int64_t j = 0; j < rows.width(); j += std::int64_t(numbers.size())) {
        const std::int64_t n = std::min(std::int64_t(numbers.size()), rows.width() - j);
        const std::int64_t element = (place.row + i) * place.columns + place.column + j;
        fill(std::uint64_t(element), std::span(numbers).first(std::size_t(n)));
        loops.elementwise.copy({static_cast<std::byte*>(row.to) + j * size, row.type, false},
                               {numbers.data(), fast::Type::f32}, n);
      }
    }
  }
};

}  // namespace

void FastKernels::random_normal(const Tensor& out, float mean, float deviation, const RandomBlock& place) {
  if (!ready({&out})) return ReferenceKernels::random_normal(out, mean, deviation, place);
  const Block block = {Lines(out), Draw(place.at), place};
  in_parallel(threads_, block.rows.count(), block.rows.elements(), [&](std::int64_t begin, std::int64_t end) {
    block.run(loops_, begin, end, [&](std::uint64_t element, std::span<float> numbers) {
      fill_normal(block.draw, element, numbers);
      for (float& number : numbers) number = mean + deviation * number;
    });
  });
}

void FastKernels::random_uniform(const Tensor& out, float low, float high, const RandomBlock& place) {
  if (!ready({&out})) return ReferenceKernels::random_uniform(out, low, high, place);
  const Block block = {Lines(out), Draw(place.at), place};
  in_parallel(threads_, block.rows.count(), block.rows.elements(), [&](std::int64_t begin, std::int64_t end) {
    block.run(loops_, begin, end, [&](std::uint64_t element, std::span<float> numbers) {
      fill_uniform(block.draw, element, numbers);
      for (float& number : numbers) number = low + (high - low) * number;
    });
  });
}

}  // namespace weft
