// A circle for every way ranks belong together, made once, in one order.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/mesh/layout.h"

namespace weft {

class ProcessMesh {
 public:
  /// Collective over world, whose size must be the layout's.
  ProcessMesh(const ParallelLayout& layout, Communicator& world);
  const ParallelLayout& layout() const { return layout_; }
  const Coordinate& here() const { return here_; }
  int place(Axis axis) const { return here_[std::size_t(axis)]; }
  /// Which of the ranks along these axes this one is.
  int place(Axes along) const { return layout_.place(world_.rank(), along); }
  Communicator& world() const { return world_; }
  /// mesh.along(Axis::tp), mesh.along({Axis::dp, Axis::cp}): the ranks that differ from this one along these
  /// axes only.
  Communicator& along(Axes wanted) const;
  /// The run of so many ranks along an axis that this one is in. Collective over the ranks along the axis.
  std::unique_ptr<Communicator> neighbours(Axis axis, int ranks) const;

 private:
  void add(Axes kind);
  ParallelLayout layout_;
  Communicator& world_;
  Coordinate here_;
  std::vector<std::pair<Axes, std::unique_ptr<Communicator>>> circles_;
};

}  // namespace weft
