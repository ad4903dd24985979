// What update rules are made of: states of what a rank keeps, and the runs of memory that it updates.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "weft/ops/elementwise.h"
#include "weft/optim/due_update.h"
#include "weft/optim/optimizer.h"
#include "weft/optim/shelf.h"
#include "weft/optim/weights.h"

namespace weft {

/// One number an element that this rank keeps, under one suffix.
class State {
 public:
  State(const Weights& weights, std::string suffix, Dtype dtype = Dtype::f32);
  Tensor of(std::size_t block, const OwnedPart& own) const {
    if (on_shelf_[block]) return shelf_->here(number_, own);
    return blocks_[block].slice(0, own.kept, own.count);
  }
  void each(const Weights& weights, const VisitHeld& visit) const {
    weights.each_kept(blocks_, suffix_, visit);
  }

 private:
  std::string suffix_;
  std::vector<Tensor> blocks_;
  Shelf* shelf_;
  std::vector<bool> on_shelf_;  // by block
  std::size_t number_ = 0;      // of what the shelf keeps
};

/// Elements next to each other that are updated alike. All tensors are flat and contiguous.
struct UpdateRun {
  std::size_t number;  // of the block
  const WeightBlock& block;
  const OwnedPart& own;
  Tensor master;
  Tensor copy;   // that layers read; empty where they read the master itself
  Tensor grads;  // f32, the rule's to work in
  double rate, decay;
};

inline double rate_of(const WeightKind& kind, const UpdateArgs& args) {
  if (kind.pace == Pace::by_width) return args.width_rate;
  return kind.role == Role::words ? args.ends_rate : args.rate;
}

inline UpdateRun run_of(const Weights& weights, std::size_t number, const OwnedPart& own,
                        const UpdateArgs& args) {
  const WeightBlock& block = weights.blocks()[number];
  return {.number = number,
          .block = block,
          .own = own,
          .master = block.master_of(own),
          .copy = block.master_is_values() ? Tensor() : block.value_of(own),
          .grads = ops::cast(block.grad_of(own), Dtype::f32, Use::gradients),
          .rate = rate_of(block.kind, args),
          .decay = block.kind.decays ? args.decay : 0};
}

/// Elements of gradients in fewer bits that are widened for a rule at once.
constexpr std::int64_t widened_at_once = std::int64_t{1} << 20;

template <class Visit>
void each_window(const OwnedPart& own, std::int64_t most, const Visit& visit) {
  for (std::int64_t from = 0; from < own.count; from += most)
    visit(OwnedPart{.at = own.at + from, .kept = own.kept + from, .count = std::min(most, own.count - from)});
}

/// All that this rank updates, block by block; window by window where states lie in a file.
template <class Visit>
void each_run(const Weights& weights, const UpdateArgs& args, const Visit& visit) {
  if (Shelf* shelf = weights.shelf()) {
    shelf->begin(Shelf::Walk::update);
    while (const Shelf::Window* window = shelf->next())
      visit(run_of(weights, window->block, window->part, args));
    return;
  }
  for (std::size_t i = 0; i < weights.blocks().size(); ++i) {
    const WeightBlock& block = weights.blocks()[i];
    if (block.kind.role == Role::kept) continue;
    const bool narrow = block.grads.dtype() != Dtype::f32;
    for (const OwnedPart& own : block.owned)
      each_window(own, narrow ? widened_at_once : own.count,
                  [&](const OwnedPart& part) { visit(run_of(weights, i, part, args)); });
  }
}

/// The same, by a rule whose elements do not ask for each other, as its last word in an update: where an
/// update can wait, what it visits comes by and by (due_update.h). `visit` outlives the call, and what it
/// refers to.
template <class Visit>
void each_run_when_due(const Weights& weights, const UpdateArgs& args, const Visit& visit) {
  if (DueUpdate* due = weights.due()) return due->begin(args, visit);
  each_run(weights, args, visit);
}

/// visit(number of the slot, where it starts in the part, elements) for each parameter that a part holds
/// elements of.
template <class Visit>
void each_slot(const WeightBlock& block, const OwnedPart& own, const Visit& visit) {
  for (std::size_t i = 0; i < block.slots.size(); ++i) {
    const std::int64_t first = block.slots[i].at;
    const std::int64_t from = std::max(own.at, first);
    const std::int64_t end = std::min(own.at + own.count, first + block.slots[i].parameter->shape.elements());
    if (from < end) visit(i, from - own.at, end - from);
  }
}

}  // namespace weft
