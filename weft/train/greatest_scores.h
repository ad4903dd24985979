// The greatest score of every head of a model's attention in a step.
#pragma once

#include <span>
#include <vector>

#include "weft/mesh/mesh.h"
#include "weft/model/config.h"
#include "weft/tensor/host.h"

namespace weft {

/// Layers raise what this rank sees, whatever microbatch and part of a sequence it is of; then ranks agree on
/// the greatest of all. A maximum knows no order, so every layout has the same. Heads that see nothing, and
/// layers that do not attend, have -inf; a head has inf where one of its scores is no number. Layers of
/// further tokens are left out, as Megatron leaves them out.
class GreatestScores {
 public:
  GreatestScores(const ModelConfig& model, const ProcessMesh& mesh, Device& device, bool wanted);
  bool wanted() const { return wanted_; }
  /// What the passes of a step raise, f32 [layers, heads]; empty where nobody wants it.
  Tensor begin_step();
  /// Collective over the mesh. The device is asked, and what the host has of it is there after receive().
  void collect();
  /// Here the host waits.
  void receive() {
    if (wanted_) arrives_.wait();
  }
  /// By layer, and in it by head; empty where nobody wants it.
  std::span<const float> all() const { return host_; }
  double greatest() const;

 private:
  const ProcessMesh& mesh_;
  Device& device_;
  bool wanted_;
  Shape shape_;
  Tensor table_;
  std::vector<float> host_;
  Fence arrives_;
};

}  // namespace weft
