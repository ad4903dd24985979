// What lies between matrices is many short runs, and a call each would cost a GPU more than they are worth:
// runs at equal distances are zeroed as one strided view.
#include "weft/optim/fresh_sums.h"

#include <algorithm>

#include "weft/ops/elementwise.h"
#include "weft/optim/weights.h"

namespace weft {
namespace {

/// Of runs that are equally long, so many are tried as the second of a progression.
constexpr std::size_t tried = 16;

}  // namespace

FreshSums::FreshSums(std::span<const WeightSlot> slots, std::int64_t from, std::int64_t elements) {
  std::vector<Run> between;
  std::int64_t done = 0;
  const auto leave_until = [&](std::int64_t at) {
    if (at > done) between.push_back({done, at - done});
  };
  for (const WeightSlot& slot : slots) {
    if (slot.parameter->shape.rank() < 2) continue;
    matrices_.push_back(&slot.parameter->grad);
    leave_until(slot.at - from);
    done = slot.at - from + slot.parameter->shape.elements();
  }
  leave_until(elements);
  std::ranges::stable_sort(between, {}, &Run::count);
  while (!between.empty()) zeros_.push_back(take_progression(between));
}

/// The longest that begins with the first run; those of a length stand together, in their order in memory.
FreshSums::Runs FreshSums::take_progression(std::vector<Run>& left) {
  const Run first = left.front();
  const auto like = std::ranges::find_if(left, [&](const Run& r) { return r.count != first.count; });
  const std::span<const Run> alike(left.begin(), like);
  const auto here = [&](std::int64_t at) { return std::ranges::binary_search(alike, at, {}, &Run::at); };
  Runs best{first.at, first.count, 1, first.count};
  for (std::size_t i = 1; i < std::min(alike.size(), tried); ++i) {
    Runs runs{first.at, first.count, 1, alike[i].at - first.at};
    while (here(runs.at + runs.times * runs.step)) ++runs.times;
    if (runs.times > best.times) best = runs;
  }
  std::erase_if(left, [&](const Run& r) {
    const std::int64_t away = r.at - best.at;
    return r.count == best.count && away >= 0 && away % best.step == 0 && away / best.step < best.times;
  });
  return best;
}

void FreshSums::begin(const Tensor& memory) const {
  for (const Runs& runs : zeros_)
    ops::fill(memory.slice(0, runs.at, runs.count).row_of(runs.times, runs.step), 0);
  for (const GradSink* sum : matrices_) sum->renew();
}

}  // namespace weft
