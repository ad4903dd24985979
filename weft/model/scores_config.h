// ScoresConfig: what becomes of scores of attention, and which of them there are.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "weft/base/legal.h"
#include "weft/base/on_resume.h"

namespace weft {

/// Whose queries grow, and from which place on: those of layers that turn nothing, as in Llama 4, where a
/// text's first place is counted as 1; or of all layers, as in Ministral 3, where it is 0.
enum class QueryGrowth : std::uint8_t { still, all };
constexpr std::array<std::string_view, 2> words(QueryGrowth) { return {"still", "all"}; }

struct ScoresConfig {
  double cap = 0.0;  // they become cap tanh(score / cap); 0: they stay
  std::int64_t chunk =
      0;  // a query sees keys of its own chunk; 0: of all. Of the layers a window would be of
  /// Queries become 1 + growth log(1 + place / growth_every) times as large, by whole times that growth_every
  /// goes into it; 0: they stay.
  std::int64_t growth_every = 0;
  double growth = 0.1;
  QueryGrowth growth_of = QueryGrowth::still;

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
    "queries grow with every so many places (0: they do not)", legal::size_or_none);
  v("growth", c.growth, OnResume::model, "how fast they do", legal::positive);
  v("growth_of", c.growth_of, OnResume::model,
    "whose queries grow: still, those of layers without rotary positions, as in Llama 4; all, as in "
    "Ministral 3, "
    "and from the second place on");
}

}  // namespace weft
