// Exact sums are added over ranks as digits, so ZeRO's and the buckets' borders cannot show.
#include "weft/optim/norms.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "weft/ops/elementwise.h"
#include "weft/ops/reduce.h"
#include "weft/optim/shelf.h"
#include "weft/tensor/exact_sum.h"
#include "weft/tensor/host.h"

namespace weft {
namespace {

/// Over the ranks that hold different parts of what one view's blocks are made of, and where states are cut,
/// over those that look at different parts of gradients.
void add_over_ranks(const Tensor& sum, const Weights& weights, View view) {
  const DataParallel& data = weights.data();
  if (data.mesh == nullptr) return;
  data.mesh->along(model_axes(view)).all_reduce(sum, Reduce::sum).wait();
  if (data.cut != CutUp::nothing) weights.sharers(view).all_reduce(sum, Reduce::sum).wait();
}

/// Every rank takes part in the sums of all views that the mesh has, whether it has such blocks or not.
bool has(const Weights& weights, View view) {
  const ProcessMesh* mesh = weights.data().mesh;
  return mesh != nullptr ? mesh->layout().has(view) : view == View::dense;
}
constexpr std::array views{View::dense, View::experts};
static_assert(views.size() == norm_parts);
Tensor part_of(const Tensor& parts, View view) { return parts.slice(0, std::int64_t(view), 1); }

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

/// Masters that lie in a file.
void add_from_shelf(const Tensor& digits, const Weights& weights, View view) {
  Shelf* shelf = weights.shelf();
  if (shelf == nullptr) return;
  shelf->begin(Shelf::Walk::read_first);
  while (const Shelf::Window* window = shelf->next()) {
    const WeightBlock& block = weights.blocks()[window->block];
    if (block.shelf == nullptr || !block.kind.counted || block.kind.view != view) continue;
    const auto add = [&](const OwnedPart& part) { ops::sum_squares_into(digits, block.master_of(part)); };
    if (block.kind.shared.ranks > 1)
      each_counted(block, window->part, add);
    else
      add(window->part);
  }
}

}  // namespace

void sum_squares_into(const Tensor& parts, const Weights& weights, Look look) {
  for (const View view : views) {
    if (!has(weights, view)) continue;
    const Tensor digits = part_of(parts, view).view({exact_digits});
    for (const WeightBlock& block : weights.blocks()) {
      const bool on_shelf = look == Look::masters && block.shelf != nullptr;
      if (!block.kind.counted || block.kind.view != view || on_shelf) continue;
      const auto add = [&](const OwnedPart& part) {
        ops::sum_squares_into(digits, look == Look::masters ? block.master_of(part) : block.grad_of(part));
      };
      for (const OwnedPart& own : block.owned)
        if (block.kind.shared.ranks > 1)
          each_counted(block, own, add);
        else
          add(own);
    }
    if (look == Look::masters) add_from_shelf(digits, weights, view);
    add_over_ranks(digits, weights, view);
    if (look == Look::own_grads && weights.data().mesh != nullptr)
      weights.data().mesh->along(data_axes(view)).all_reduce(digits, Reduce::sum).wait();
  }
}

// Squares of a rank's own gradients times so many ranks as add up to a whole one have a mean over these
// ranks.
double norm_of(std::span<const double> parts, const Weights& weights, Look look) {
  const ProcessMesh* mesh = weights.data().mesh;
  double squares = 0;
  for (const View view : views) {
    if (!has(weights, view)) continue;
    const double sum = exact_value(parts.subspan(std::size_t(view) * exact_digits).first<exact_digits>());
    const bool mean = look == Look::own_grads && mesh != nullptr;
    squares += mean ? sum * mesh->along(data_axes(view)).size() : sum;
  }
  return std::sqrt(squares);
}

void count_zeros_into(const Tensor& parts, const Weights& weights) {
  for (const View view : views) {
    if (!has(weights, view)) continue;
    std::int64_t pieces = 0;
    const auto each = [&](const auto& visit) {
      for (const WeightBlock& block : weights.blocks())
        for (const OwnedPart& own : block.owned)
          if (block.kind.view == view)
            each_counted(block, own, [&](const OwnedPart& part) { visit(block, part); });
    };
    each([&](const WeightBlock&, const OwnedPart&) { ++pieces; });
    const Tensor counts = empty(weights.device(), {pieces}, Dtype::i64);
    each([&](const WeightBlock& block, const OwnedPart& part) {
      ops::copy_into(counts.slice(0, --pieces, 1), ops::count_zeros(block.grad_of(part)));
    });
    const Tensor total = part_of(parts, view);
    ops::copy_into(total, ops::sum(counts));
    add_over_ranks(total, weights, view);
  }
}

double global_norm(const Weights& weights, Look look) {
  const Tensor parts = ops::zeros(weights.device(), {norm_parts, exact_digits}, Dtype::f64);
  sum_squares_into(parts, weights, look);
  std::array<double, std::size_t{norm_parts} * exact_digits> host{};
  read(parts, std::span<double>(host));
  return norm_of(host, weights, look);
}

double clip_factor(double norm, double limit) { return limit > 0 ? std::min(1.0, limit / (norm + 1e-6)) : 1; }

}  // namespace weft
