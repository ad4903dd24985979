// Every rank makes every kind of circle, in the same order, whether it will speak in it or not.
#include "weft/mesh/mesh.h"

#include <algorithm>
#include <array>

#include "weft/base/error.h"

namespace weft {
namespace {

const std::array<Axes, 8> kinds{Axes{Axis::tp},           Axes{Axis::cp},           Axes{Axis::dp},
                                Axes{Axis::pp},           Axes{Axis::dp, Axis::cp}, Axes{Axis::tp, Axis::pp},
                                Axes{Axis::tp, Axis::cp}, Axes{Axis::tp, Axis::dp}};

}  // namespace

ProcessMesh::ProcessMesh(const ParallelLayout& layout, Communicator& world)
    : layout_(layout), world_(world), here_(layout.at(world.rank())) {
  if (layout.world() != world.size())
    fail(Kind::usage, "mesh: the layout is for ", layout.world(), " ranks, ", world.size(), " are here");
  for (const Axes& kind : kinds) {
    const auto groups = layout.groups(kind);
    const auto mine = std::ranges::find_if(groups, [&](const std::vector<int>& group) {
      return std::ranges::find(group, world.rank()) != group.end();
    });
    const int color = int(mine - groups.begin());
    circles_.emplace_back(kind, world.split(color, world.rank()));
  }
}

Communicator& ProcessMesh::along(Axes wanted) const {
  for (const auto& [kind, circle] : circles_)
    if (kind == wanted) return *circle;
  fail(Kind::internal, "mesh: no circle was made along these axes");
}

}  // namespace weft
