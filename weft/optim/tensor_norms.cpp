// Numbers of tensors follow their names, because the order of blocks may differ from rank to rank.
#include "weft/optim/tensor_norms.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "weft/ops/elementwise.h"
#include "weft/ops/reduce.h"
#include "weft/tensor/exact_sum.h"
#include "weft/tensor/host.h"

namespace weft {
namespace {

struct Named {
  View view;
  std::string name;
  std::size_t block, slot;
};

}  // namespace

TensorNorms::TensorNorms(const Weights& weights, int of_each) : weights_(weights), of_each_(of_each) {
  std::vector<Named> all;
  for (std::size_t i = 0; i < weights.blocks().size(); ++i) {
    const WeightBlock& block = weights.blocks()[i];
    numbers_.emplace_back(block.slots.size());
    for (std::size_t k = 0; k < block.slots.size(); ++k)
      all.push_back({block.kind.view, block.slots[k].parameter->name, i, k});
  }
  std::ranges::stable_sort(all, [](const Named& a, const Named& b) {
    return std::tie(a.view, a.name) < std::tie(b.view, b.name);
  });
  for (std::size_t number = 0; number < all.size(); ++number) {
    numbers_[all[number].block][all[number].slot] = number;
    if (all[number].view == View::dense) ++dense_;
  }
  digits_ = ops::zeros(weights.device(), {std::int64_t(all.size()) * of_each * exact_digits}, Dtype::f64,
                       Use::optimizer);
  host_.resize(std::size_t(digits_.elements()));
}

void TensorNorms::clear() { ops::fill(digits_, 0); }

std::int64_t TensorNorms::place_of(std::size_t tensor, int which) const {
  return (std::int64_t(tensor) * of_each_ + which) * exact_digits;
}

Tensor TensorNorms::digits_of(std::size_t tensor, int which) const {
  return digits_.slice(0, place_of(tensor, which), exact_digits);
}

// Copies of one piece are counted once, but for tied words: every stage that holds them wants their norm.
void TensorNorms::add(int which, std::size_t block, const OwnedPart& own, const Tensor& x) {
  const WeightBlock& all = weights_.blocks()[block];
  for (std::size_t i = 0; i < all.slots.size(); ++i) {
    const WeightSlot& slot = all.slots[i];
    const int tie = slot.parameter->tied ? weights_.ties().copy(*slot.parameter) : 0;
    for (const Piece& piece : slot.parameter->pieces) {
      const std::int64_t first = slot.at + piece.at;
      const std::int64_t from = std::max(own.at, first);
      const std::int64_t end = std::min(own.at + own.count, first + piece.where.local.elements());
      if (from < end && piece.where.replica == tie)
        ops::sum_squares_into(digits_of(numbers_[block][i], which), x.slice(0, from - own.at, end - from));
    }
  }
}

void TensorNorms::sum_over_ranks() {
  add_over_ranks();
  read(digits_, std::span<double>(host_));
}

Tensor TensorNorms::ratios(const NormRatioArgs& how) const {
  add_over_ranks();
  const auto count = std::int64_t(tensors());
  const Tensor out = empty(weights_.device(), {count}, Dtype::f32, Use::workspace);
  ops::norm_ratios_into(out, digits_.view({count, of_each_, exact_digits}), how);
  return out;
}

void TensorNorms::add_over_ranks() const {
  const DataParallel& data = weights_.data();
  if (data.mesh == nullptr) return;
  const std::int64_t each = std::int64_t{of_each_} * exact_digits;
  const std::int64_t dense = dense_ * each;
  const auto add = [&](View view, const Tensor& sums) {
    if (sums.elements() == 0) return;
    data.mesh->along(model_axes(view) - Axis::pp).all_reduce(sums, Reduce::sum).wait();
    if (data.cut != CutUp::nothing) weights_.sharers(view).all_reduce(sums, Reduce::sum).wait();
  };
  add(View::dense, digits_.slice(0, 0, dense));
  add(View::experts, digits_.slice(0, dense, digits_.elements() - dense));
}

double TensorNorms::operator()(std::size_t tensor, int which) const {
  const auto all = std::span(host_).subspan(std::size_t(place_of(tensor, which)));
  return std::sqrt(exact_value(all.first<exact_digits>()));
}

}  // namespace weft
