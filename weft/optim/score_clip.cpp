// Rows of a head lie together, so each part of one is scaled by itself, where this rank keeps some of it.
#include "weft/optim/score_clip.h"

#include <algorithm>
#include <cmath>

#include "weft/ops/elementwise.h"
#include "weft/optim/shelf.h"
#include "weft/optim/states.h"

namespace weft {
namespace {

/// Elements of a parameter, counted from its first, and what they are multiplied with.
struct Scaled {
  std::int64_t from = 0, end = 0;
  double factor = 1;
};

template <class Visit>
void each_scaled(const Parameter& parameter, const ScoreClip& clip, const Visit& visit) {
  const ScoreRows& rows = *parameter.scores;
  const std::int64_t units = parameter.shape[0] / rows.unit,
                     width = parameter.shape.elements() / parameter.shape[0];
  for (std::int64_t unit = 0; unit < units; ++unit) {
    const double eta = clip.eta(rows.layer, rows.first_head + unit * rows.heads, rows.heads);
    if (eta == 1) continue;
    for (const ScoreRows::Part& part : rows.parts) {
      const std::int64_t from = (unit * rows.unit + part.from) * width;
      visit(Scaled{from, from + part.count * width, clip.factor(eta, part.of)});
    }
  }
}

/// What this rank keeps of a block, or a window of that.
void scale(const WeightBlock& block, const OwnedPart& own, const ScoreClip& clip) {
  each_slot(block, own, [&](std::size_t number, std::int64_t place, std::int64_t count) {
    const WeightSlot& slot = block.slots[number];
    if (!slot.parameter->scores) return;
    const std::int64_t first = own.at + place - slot.at;
    each_scaled(*slot.parameter, clip, [&](const Scaled& some) {
      const std::int64_t from = std::max(some.from, first), end = std::min(some.end, first + count);
      if (from >= end) return;
      const std::int64_t shift = place + from - first;
      const OwnedPart part{.at = own.at + shift, .kept = own.kept + shift, .count = end - from};
      const Tensor master = block.master_of(part);
      ops::scale_in_place(master, float(some.factor));
      if (!block.master_is_values()) ops::copy_into(block.value_of(part), master);
    });
  });
}

}  // namespace

bool ScoreClip::acts() const {
  return std::ranges::any_of(greatest, [this](float score) { return double(score) > threshold; });
}

double ScoreClip::eta(int layer, std::int64_t first, std::int64_t count) const {
  const auto some = greatest.subspan(std::size_t(layer * heads + first), std::size_t(count));
  const auto score = double(std::ranges::max(some));
  return score > threshold ? threshold / score : 1;
}

double ScoreClip::factor(double eta, ScoreRows::Of of) const {
  switch (of) {
    case ScoreRows::Of::query:
      return std::pow(eta, alpha);
    case ScoreRows::Of::key:
      return std::pow(eta, 1 - alpha);
    case ScoreRows::Of::alone:
      break;
  }
  return eta;
}

void clip_scores(Weights& weights, const ScoreClip& clip) {
  if (!clip.acts()) return;
  if (Shelf* shelf = weights.shelf()) {
    shelf->begin(Shelf::Walk::update);
    while (const Shelf::Window* window = shelf->next()) {
      const WeightBlock& block = weights.blocks()[window->block];
      scale(block, window->part, clip);
      // What layers read from a file is written by windows, and not read before.
      if (block.in_file && !block.master_is_values())
        ops::copy_into(block.value_of(window->part), block.master_of(window->part));
    }
  } else {
    for (const WeightBlock& block : weights.blocks())
      for (const OwnedPart& own : block.owned) scale(block, own, clip);
  }
  weights.gather();
}

}  // namespace weft
