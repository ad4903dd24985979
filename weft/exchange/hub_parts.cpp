#include "weft/exchange/hub_parts.h"

#include <algorithm>

namespace weft::exchange {

std::vector<float> HubParts::values(const Recipe& recipe, std::size_t part) {
  if (recipe_ != &recipe) ours_ = read_(recipe);
  recipe_ = &recipe;
  const Theirs& theirs = recipe.parts[part];
  std::vector<float> out(std::size_t(theirs.elements()));
  const std::int64_t columns = recipe.columns();
  for (const RowRun& run : recipe.runs) {
    if (run.part != part) continue;
    const float* from = ours_.data() + run.to * columns;
    for (std::int64_t row = 0; row < run.count; ++row, from += columns) {
      const std::int64_t their_row = run.from + row * run.step;
      if (!theirs.turned) {
        std::copy(from, from + columns, out.data() + their_row * columns);
        continue;
      }
      for (std::int64_t column = 0; column < columns; ++column)
        out[std::size_t(column * theirs.rows() + their_row)] = from[column];
    }
  }
  if (recipe.plus != 0)
    for (float& value : out) value = float(double(value) + recipe.plus);
  return out;
}

}  // namespace weft::exchange
