// Numbers that tests/golden/*/make.py make in the same way.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tests/support/tiny.h"

namespace weft::testing {

inline std::uint32_t mix(std::uint32_t x) {
  x = (x ^ (x >> 16)) * 0x45D9F3BU;
  x = (x ^ (x >> 16)) * 0x45D9F3BU;
  return x ^ (x >> 16);
}

/// Numbers by a parameter's place and an element's: so far apart around 0, but gains closer around 1.
inline void set_golden_weights(TinyModel& model, const std::map<std::string, std::uint32_t>& places,
                               double apart) {
  for (WeightBlock& block : model.weights().blocks())
    for (const WeightSlot& slot : block.slots) {
      const Parameter& p = *slot.parameter;
      const bool gain = p.name.ends_with(".gain");
      const auto values = Weights::part(block.master, slot).as<float>();
      std::size_t count = 0;
      for (const Piece& piece : p.pieces) count += std::size_t(piece.where.local.elements());
      for (std::size_t i = 0; i < count; ++i) {
        const double unit = double(mix(places.at(p.name) * 1000003U + std::uint32_t(i))) / 0x1p32 - 0.5;
        values[i] = float((gain ? 1.0 : 0.0) + (gain ? 0.2 : apart) * unit);
      }
    }
  model.weights().publish();
}

}  // namespace weft::testing
