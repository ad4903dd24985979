// Dropout by address, as base/random.h says it: whether an element is kept follows from where it stands.
#pragma once

#include "weft/backend/cuda/rows.h"
#include "weft/base/random.h"
#include "weft/tensor/args.h"

namespace weft::cuda {

/// Of a tensor [s, b, h] as rows s b.
struct Drops {
  const std::int64_t* samples = nullptr;    // [b]; null: nothing is dropped
  const std::int32_t* positions = nullptr;  // [s]
  std::int64_t batch = 0, width = 0, channel = 0;
  Address at;
  std::uint32_t threshold = 0;
  float factor = 1;
};

inline Drops drops_of(const DropoutArgs& how) {
  Drops out;
  if (how.probability == 0) return out;
  out.samples = elements<std::int64_t>(how.samples);
  out.positions = elements<std::int32_t>(how.positions);
  out.batch = how.samples.dim(0);
  out.width = how.width;
  out.channel = how.channel;
  out.at = how.at;
  out.threshold = share(how.probability);
  out.factor = 1 / (1 - how.probability);
  return out;
}

/// Drops among eight elements of a row.
__device__ __forceinline__ void drop(const Drops& drops, std::int64_t row, std::int64_t column, Eight& e) {
  if (!drops.samples) return;
  Address at = drops.at;
  const auto place = std::uint32_t(row), batch = std::uint32_t(drops.batch);  // no GPU has memory for 2^32
  at.sample = std::uint64_t(drops.samples[place % batch]);
  const Draw draw(at);
  const std::int64_t position = drops.positions[place / batch];
  const auto first = std::uint64_t(position * drops.width + drops.channel + column);
  PhiloxCounter four = draw.block(first >> 2);
#pragma unroll
  for (unsigned i = 0; i < 8; ++i) {
    const std::uint64_t element = first + i;
    if (i > 0 && element % 4 == 0) four = draw.block(element >> 2);
    const std::uint32_t low = element % 2 ? four[1] : four[0], high = element % 2 ? four[3] : four[2];
    e.x[i] = (element & 2 ? high : low) >= drops.threshold ? e.x[i] * drops.factor : 0.0F;
  }
}

}  // namespace weft::cuda
