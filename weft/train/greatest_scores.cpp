#include "weft/train/greatest_scores.h"

#include <algorithm>
#include <limits>

#include "weft/mesh/samples.h"
#include "weft/ops/elementwise.h"

namespace weft {

GreatestScores::GreatestScores(const ModelConfig& model, const ProcessMesh& mesh, Device& device, bool wanted)
    : mesh_(mesh), device_(device), wanted_(wanted), shape_{model.layers, model.heads} {
  if (wanted_) host_.resize(std::size_t(shape_.elements()));
}

Tensor GreatestScores::begin_step() {
  if (!wanted_) return {};
  // Its place for good: another one each step would move what comes after it.
  if (!table_) table_ = empty(device_, shape_);
  ops::fill(table_, -std::numeric_limits<double>::infinity());
  return table_;
}

void GreatestScores::collect() {
  if (!wanted_) return;
  mesh_.along(stage_axes).all_reduce(table_, Reduce::max).wait();
  mesh_.along(Axis::pp).all_reduce(table_, Reduce::max).wait();
  arrives_ = ask_for(table_, std::span<float>(host_));
}

double GreatestScores::greatest() const { return double(std::ranges::max(host_)); }

}  // namespace weft
