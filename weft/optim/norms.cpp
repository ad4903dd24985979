// Exact sums are added over ranks as digits, so ZeRO's and the buckets' borders cannot show.
#include "weft/optim/norms.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "weft/ops/elementwise.h"
#include "weft/ops/reduce.h"
#include "weft/tensor/host.h"

namespace weft {
namespace {

/// Over the ranks that hold different parts of what one view's blocks are made of, and where states are cut,
/// over those that look at different parts of gradients.
void add_over_ranks(const Tensor& sum, const Weights& weights, View view) {
  const DataParallel& data = weights.data();
  if (data.mesh == nullptr) return;
  data.mesh->along(model_axes(view)).all_reduce(sum, Reduce::sum).wait();
  if (data.cut != CutUp::nothing) data.mesh->along(data_axes(view)).all_reduce(sum, Reduce::sum).wait();
}

/// Every rank takes part in the sums of all views that the mesh has, whether it has such blocks or not.
bool has(const Weights& weights, View view) {
  const ProcessMesh* mesh = weights.data().mesh;
  return mesh != nullptr ? mesh->layout().has(view) : view == View::dense;
}
constexpr std::array views{View::dense, View::experts};

/// Of squares of a rank's own gradients times so many ranks as add up to a whole one.
double mean_over_readers(const Tensor& digits, const Weights& weights, View view) {
  if (weights.data().mesh == nullptr) return ops::exact_number(digits);
  Communicator& readers = weights.data().mesh->along(data_axes(view));
  readers.all_reduce(digits, Reduce::sum).wait();
  return ops::exact_number(digits) * readers.size();
}

/// The runs of a part that lie in parameters, and that this rank counts: between parameters lies padding, and
/// of a key that neighbours share one counts.
template <class Visit>
void each_counted(const WeightBlock& block, const OwnedPart& own, const Visit& visit) {
  for (const WeightSlot& slot : block.slots)
    for (const Piece& piece : slot.parameter->pieces) {
      const std::int64_t first = slot.at + piece.at;
      const std::int64_t from = std::max(own.at, first);
      const std::int64_t end = std::min(own.at + own.count, first + piece.where.local.elements());
      if (from < end && piece.where.replica == 0)
        visit(OwnedPart{.at = from, .kept = own.kept + from - own.at, .count = end - from});
    }
}

}  // namespace

double global_norm(const Weights& weights, Look look) {
  double squares = 0;
  for (const View view : views) {
    if (!has(weights, view)) continue;
    const Tensor digits = ops::exact_zero(weights.device());
    for (const WeightBlock& block : weights.blocks()) {
      if (!block.kind.counted || block.kind.view != view) continue;
      const auto add = [&](const OwnedPart& part) {
        ops::sum_squares_into(digits, look == Look::masters ? block.master_of(part) : block.grad_of(part));
      };
      for (const OwnedPart& own : block.owned)
        if (block.kind.shared.ranks > 1)
          each_counted(block, own, add);
        else
          add(own);
    }
    add_over_ranks(digits, weights, view);
    squares += look == Look::own_grads ? mean_over_readers(digits, weights, view) : ops::exact_number(digits);
  }
  return std::sqrt(squares);
}

std::int64_t global_zeros(const Weights& weights) {
  double zeros = 0;
  for (const View view : views) {
    if (!has(weights, view)) continue;
    double here = 0;
    for (const WeightBlock& block : weights.blocks())
      for (const OwnedPart& own : block.owned)
        if (block.kind.view == view)
          each_counted(block, own,
                       [&](const OwnedPart& part) { here += number(ops::count_zeros(block.grad_of(part))); });
    const Tensor total = ops::zeros(weights.device(), {1}, Dtype::f64);
    ops::fill(total, here);
    add_over_ranks(total, weights, view);
    zeros += number(total);
  }
  return std::int64_t(zeros);
}

double clip_factor(double norm, double limit) { return limit > 0 ? std::min(1.0, limit / (norm + 1e-6)) : 1; }

}  // namespace weft
