#include "weft/plan/partners.h"

#include <array>

namespace weft {

std::string_view name(Partners partners) {
  constexpr std::array<std::string_view, kinds_of_partners> names{"data",     "tensor",  "context",
                                                                  "pipeline", "experts", "several"};
  return names[std::size_t(partners)];
}

Partners partners_along(Axes along) {
  if (along == Axis::tp) return Partners::tensor;
  if (along == Axis::cp) return Partners::context;
  if (along == Axis::pp) return Partners::pipeline;
  if ((along - data_axes(View::dense) - data_axes(View::experts)).empty()) return Partners::data;
  return (along - Axes{Axis::etp, Axis::ep}).empty() ? Partners::experts : Partners::several;
}

}  // namespace weft
