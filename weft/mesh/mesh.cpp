// Every rank makes every kind of circle, in the same order, whether it will speak in it or not.
#include "weft/mesh/mesh.h"

#include <algorithm>
#include <array>

#include "weft/base/error.h"

namespace weft {
namespace {

constexpr std::array<Axes, 9> kinds{
    Axes{Axis::tp},           Axes{Axis::cp},           Axes{Axis::dp},
    Axes{Axis::pp},           Axes{Axis::dp, Axis::cp}, Axes{Axis::tp, Axis::pp},
    Axes{Axis::tp, Axis::cp}, Axes{Axis::tp, Axis::dp}, Axes{Axis::tp, Axis::cp, Axis::dp}};
constexpr std::array<Axes, 5> kinds_of_experts{Axes{Axis::etp}, Axes{Axis::ep}, Axes{Axis::edp},
                                               Axes{Axis::etp, Axis::ep},
                                               Axes{Axis::etp, Axis::ep, Axis::pp}};

}  // namespace

ProcessMesh::ProcessMesh(const ParallelLayout& layout, Communicator& world)
    : layout_(layout), world_(world), here_(layout.at(world.rank())) {
  if (layout.world() != world.size())
    fail(Kind::usage, "mesh: the layout is for ", layout.world(), " ranks, ", world.size(), " are here");
  for (const Axes kind : kinds) add(kind);
  if (!layout.has(View::experts)) return;
  for (const Axes kind : kinds_of_experts) add(kind);
}

void ProcessMesh::add(Axes kind) {
  const auto groups = layout_.groups(kind);
  const auto mine = std::ranges::find_if(groups, [&](const std::vector<int>& group) {
    return std::ranges::find(group, world_.rank()) != group.end();
  });
  const int color = int(mine - groups.begin());
  circles_.emplace_back(kind, world_.split(color, world_.rank()));
}

Communicator& ProcessMesh::along(Axes wanted) const {
  for (const auto& [kind, circle] : circles_)
    if (kind == wanted) return *circle;
  fail(Kind::internal, "mesh: no circle was made along ", names(wanted));
}

Communicator& ProcessMesh::in_runs(Axes along, int ranks) const {
  Communicator& circle = this->along(along);
  if (ranks < 1 || circle.size() % ranks != 0)
    fail(Kind::internal, "mesh: ", circle.size(), " ranks along ", names(along), " are no runs of ", ranks);
  return circle;
}

Communicator& ProcessMesh::neighbours(Axes along, int ranks) const {
  Communicator& circle = in_runs(along, ranks);
  auto& run = runs_[{along, ranks}];
  if (!run) run = circle.split(circle.rank() / ranks, circle.rank());
  return *run;
}

Communicator& ProcessMesh::beyond(Axes along, int ranks) const {
  Communicator& circle = in_runs(along, ranks);
  auto& run = beyond_[{along, ranks}];
  if (!run) run = circle.split(circle.rank() % ranks, circle.rank());
  return *run;
}

}  // namespace weft
