// How evenly the experts of a step were chosen, over all layers and ranks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weft/mesh/mesh.h"
#include "weft/model/config.h"
#include "weft/nn/layer.h"

namespace weft {

/// A layer's, or the worst and the mean of all layers.
struct ExpertLoad {
  double busiest = 0;  // rows of the expert that had most, by the mean of all
  double entropy = 1;  // of the rows' shares, by the greatest there is: 1 where all experts had as many
  double dropped = 0;  // share of the choices that found no room
};

/// What routers counted in a step. Made once; asks the heap for nothing after the first step.
class RoutingTable {
 public:
  RoutingTable(const ModelConfig& model, const ProcessMesh& mesh, Device& device);
  bool empty() const { return experts_ == 0; }
  /// From the routers of this rank's stages. Collective over the mesh. The device is asked, and what the host
  /// has of it is there after receive().
  void collect(std::span<const Stage* const> stages, int passes);
  /// Here the host waits.
  void receive() { arrives_.wait(); }
  /// f32 [e]: rows of each expert of a layer, of all ranks.
  Tensor counts(int layer) const;
  /// Empty where a layer has no experts.
  std::span<const float> rows(int layer) const;
  ExpertLoad load(int layer) const;
  /// The busiest of all layers, and the means of the rest.
  ExpertLoad load() const;
  int layers() const { return layers_; }
  /// The i-th balancing loss of a layer, as it is told of all; 0 where it has none.
  double loss(int layer, int i) const;

 private:
  double asked(int layer) const { return double(host_counts_[std::size_t((layer + 1) * width_ - 1)]); }
  const ProcessMesh& mesh_;
  Device& device_;
  int layers_ = 0, experts_ = 0, losses_ = 0, passes_ = 1;
  std::int64_t width_ = 0;
  Fence arrives_;  // behind it the host has both
  Tensor counts_;  // f32 [layers, rows of each expert, and the choices asked for]
  Tensor told_;    // f64 [layers, digits of each loss]; empty without
  std::vector<float> host_counts_;
  std::vector<double> host_told_;
};

}  // namespace weft
