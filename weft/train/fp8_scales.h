// The scales of a rank's 8-bit products: one memory for all, so that ranks agree on them in one word.
#pragma once

#include <map>
#include <vector>

#include "weft/checkpoint/named.h"
#include "weft/mesh/mesh.h"
#include "weft/nn/layer.h"

namespace weft {

class Fp8Scales {
 public:
  /// Gives every product of the stages that wants it its scales, all of them 1.
  Fp8Scales(const std::map<int, Stage>& stages, const ProcessMesh& mesh, Device& device);
  bool empty() const { return !rows_; }
  /// Nothing was met yet.
  void begin_step() const;
  /// Delayed scales follow from what all ranks of the stage met. Collective over them.
  void follow() const;
  /// Of delayed scales: this rank's, which all ranks of its stage hold alike.
  std::vector<checkpoint::Named> named() const;

 private:
  Tensor met() const;

  const ProcessMesh& mesh_;
  Fp8Rules rules_;
  std::vector<std::string> names_;
  Tensor rows_;  // f32 [products, fp8_operands, 2 + remembered]
};

}  // namespace weft
