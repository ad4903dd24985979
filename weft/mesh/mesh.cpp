// Every rank makes every kind of circle, in the same order, whether it will speak in it or not.
#include "weft/mesh/mesh.h"

#include "weft/base/error.h"
#include "weft/mesh/circles.h"

namespace weft {
namespace {

/// Where a group sits along the axes of its view that it does not go along. That takes no look at other
/// ranks: a plan makes the mesh of every one of them.
int color_of(const ParallelLayout& layout, const Coordinate& here, Axes kind) {
  const Axes dense = axes_of(View::dense);
  const Axes others = ((kind - dense).empty() ? dense : axes_of(View::experts)) - kind;
  int color = 0, stride = 1;
  for (int axis = 0; axis < axes; ++axis) {
    if (!others.holds(Axis(axis))) continue;
    color += here[std::size_t(axis)] * stride;
    stride *= layout.degree(Axis(axis));
  }
  return color;
}

}  // namespace

ProcessMesh::ProcessMesh(const ParallelLayout& layout, Communicator& world)
    : layout_(layout), world_(world), here_(layout.at(world.rank())) {
  if (layout.world() != world.size())
    fail(Kind::usage, "mesh: the layout is for ", layout.world(), " ranks, ", world.size(), " are here");
  for (const Axes kind : circles_of(layout)) add(kind);
}

void ProcessMesh::add(Axes kind) {
  circles_.emplace_back(kind, world_.split(color_of(layout_, here_, kind), world_.rank()));
}

Communicator& ProcessMesh::along(Axes wanted) const {
  for (const auto& [kind, circle] : circles_)
    if (kind == wanted) return *circle;
  fail(Kind::internal, "mesh: no circle was made along ", names(wanted));
}

/// Those along these axes, or the run of `within` of them that this rank is in; whole runs of `ranks` each.
Communicator& ProcessMesh::in_runs(Axes along, int ranks, int within) const {
  Communicator& circle = within > 0 ? neighbours(along, within) : this->along(along);
  if (ranks < 1 || circle.size() % ranks != 0)
    fail(Kind::internal, "mesh: ", circle.size(), " ranks along ", names(along), " are no runs of ", ranks);
  return circle;
}

Communicator& ProcessMesh::neighbours(Axes along, int ranks) const {
  Communicator& circle = in_runs(along, ranks, 0);
  auto& run = runs_[{along, ranks}];
  if (!run) run = circle.split(circle.rank() / ranks, circle.rank());
  return *run;
}

Communicator& ProcessMesh::beyond(Axes along, int ranks, int within) const {
  Communicator& circle = in_runs(along, ranks, within);
  auto& run = beyond_[{along, ranks, within}];
  if (!run) run = circle.split(circle.rank() % ranks, circle.rank());
  return *run;
}

}  // namespace weft
