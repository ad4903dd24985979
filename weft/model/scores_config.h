// ScoresConfig: what becomes of scores of attention, and which of them there are.
#pragma once

#include <cstdint>

#include "weft/base/legal.h"
#include "weft/base/on_resume.h"

namespace weft {

struct ScoresConfig {
  double cap = 0.0;  // they become cap tanh(score / cap); 0: they stay
  std::int64_t chunk =
      0;  // a query sees keys of its own chunk; 0: of all. Of the layers a window would be of
  /// Queries of layers that turn nothing become 1 + growth log(1 + (place + 1) / growth_every) times as
  /// large, by whole times that growth_every goes into it; 0: they stay.
  std::int64_t growth_every = 0;
  double growth = 0.1;

  bool any() const { return cap > 0 || chunk > 0 || growth_every > 0; }
};

template <class Visitor>
void describe(Visitor& v, ScoresConfig& c) {
  v("cap", c.cap, OnResume::model,
    "scores of attention become cap tanh(score / cap), as Gemma 2 has them (0: they stay as they are)",
    legal::not_negative);
  v("chunk", c.chunk, OnResume::model,
    "a query sees keys of its own so many tokens alone, as in Llama 4, not of the text before them (0: it "
    "does)",
    legal::size_or_none);
  v("growth_every", c.growth_every, OnResume::model,
    "queries of layers without rotary positions grow with every so many places, as in Llama 4 (0: they do "
    "not)",
    legal::size_or_none);
  v("growth", c.growth, OnResume::model, "how fast they do", legal::positive);
}

}  // namespace weft
