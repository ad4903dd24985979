// A circle for every way ranks belong together, made once, in one order.
#pragma once

#include <map>
#include <memory>
#include <tuple>
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
  /// The run of so many ranks along these axes that this one is in. The first to ask for it makes it:
  /// collective over the ranks along them.
  Communicator& neighbours(Axes along, int ranks) const;
  /// The ranks that have this one's place in the other such runs: all of them, or those in the run of
  /// `within` ranks that this one is in. Asked for in the same way.
  Communicator& beyond(Axes along, int ranks, int within = 0) const;

 private:
  void add(Axes kind);
  ParallelLayout layout_;
  Communicator& world_;
  Coordinate here_;
  std::vector<std::pair<Axes, std::unique_ptr<Communicator>>> circles_;
  using Runs = std::map<std::pair<Axes, int>, std::unique_ptr<Communicator>>;
  Communicator& in_runs(Axes along, int ranks, int within) const;
  mutable Runs runs_;
  mutable std::map<std::tuple<Axes, int, int>, std::unique_ptr<Communicator>> beyond_;
};

}  // namespace weft
