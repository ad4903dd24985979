// How the ranks of a mesh hold one tensor: along which axes they hold different parts, and where they hold
// the same, what becomes of their gradients.
#pragma once

#include <string_view>

#include "weft/mesh/axes.h"

namespace weft {

/// Every axis of one view stands in one of the three. A tensor lies in one pipeline stage: pp cuts; what
/// several stages hold is tied (nn/parameter.h).
struct Spread {
  Axes cut;      // different parts
  Axes partial;  // the same part, and gradients that are terms of one sum
  Axes copy;     // the same part, and the same gradient: one of them counts, and writes files

  auto operator<=>(const Spread&) const = default;
  /// The same, but copies along these axes see other tokens, or other heads: their gradients are terms.
  Spread with_terms(Axes along) const { return {cut, partial | (copy & along), copy - along}; }
  Spread without_terms(Axes along) const { return {cut, partial - along, copy | (partial & along)}; }
};

/// A tensor that is cut along some axes of the model and the same along the others.
constexpr Spread spread_in(View view, Axes cut = {}) {
  return {cut | Axis::pp, data_axes(view), model_axes(view) - cut - Axis::pp};
}

/// The view of a parameter's axes. Refuses a spread that leaves an axis out, or says two things of one.
View view_of(const Spread& spread, std::string_view parameter);

}  // namespace weft
