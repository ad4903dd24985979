// Windows are visited in turn; a layer knows the last one that it waits for.
#include "weft/optim/due_update.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "weft/base/error.h"
#include "weft/ops/elementwise.h"
#include "weft/optim/shelf.h"
#include "weft/optim/states.h"

namespace weft {
namespace {

/// The first of the rank's layers that a window holds weights of.
int first_layer(const WeightBlock& block, const OwnedPart& part) {
  int first = std::numeric_limits<int>::max();
  each_slot(block, part, [&](std::size_t slot, std::int64_t, std::int64_t) {
    first = std::min(first, block.slots[slot].parameter->layer);
  });
  return first;
}

}  // namespace

DueUpdate::DueUpdate(Weights& weights, const std::map<int, Stage>& stages)
    : weights_(weights), shelf_(*weights.shelf()) {
  shelf_.put_in_order([this](const Shelf::Window& window) {
    return first_layer(weights_.blocks()[window.block], window.part);
  });
  make_needs(stages);
  in_files_ = std::ranges::any_of(weights.blocks(), [](const WeightBlock& b) { return b.in_file; });
}

// Values that others updated would have to arrive before they are read.
bool DueUpdate::possible(const Weights& weights) {
  return weights.shelf() != nullptr && std::ranges::all_of(weights.blocks(), [](const WeightBlock& block) {
           return !block.readers.cut() || block.readers.cut(CutUp::weights);
         });
}

void DueUpdate::make_needs(const std::map<int, Stage>& stages) {
  std::size_t so_far = 0;
  for (const auto& [number, stage] : stages)
    for (const auto& layer : stage.layers) {
      const auto note = [&](const Parameter& p) { so_far = std::max(so_far, turns_for(p)); };
      layer->each_read(note);
      layer->each_parameter(note);
      turns_.push_back(so_far);
    }
}

std::size_t DueUpdate::turns_for(const Parameter& parameter) const {
  std::size_t turns = 0;
  for (std::size_t i = 0; i < shelf_.windows().size(); ++i) {
    const Shelf::Window& window = shelf_.windows()[i];
    const WeightBlock& block = weights_.blocks()[window.block];
    each_slot(block, window.part, [&](std::size_t slot, std::int64_t, std::int64_t) {
      if (block.slots[slot].parameter == &parameter) turns = i + 1;
    });
  }
  return turns;
}

void DueUpdate::begin(const UpdateArgs& args, Visit visit) {
  if (error_) std::rethrow_exception(error_);
  if (going_) fail(Kind::internal, "an update begins, and ", visited_, " windows of the last one are made");
  args_ = args;
  visit_ = std::move(visit);
  visited_ = 0;
  shelf_.begin(Shelf::Walk::update);
  going_ = true;
}

void DueUpdate::until(int layer) {
  if (!going_ && !error_) return;
  go_on(turns_[std::min(std::size_t(layer), turns_.size() - 1)]);
}

void DueUpdate::finish() {
  if (going_ || error_) go_on(shelf_.windows().size());
}

// What is here beyond that makes room for more: no more than there are rooms, so that a disk which is faster
// than we are does not hold the layer up.
void DueUpdate::go_on(std::size_t turns) {
  if (error_) std::rethrow_exception(error_);
  try {
    while (visited_ < turns) visit_next();
    for (int here = shelf_.rooms(); here > 0 && going_ && shelf_.ready(); --here) visit_next();
    if (in_files_) shelf_.wait_for_layers();
  } catch (...) {
    error_ = std::current_exception();
    throw;
  }
}

void DueUpdate::visit_next() {
  const Shelf::Window* window = shelf_.next();
  if (window == nullptr)
    fail(Kind::internal, "an update has visited ", visited_, " windows, and has no more");
  const UpdateRun run = run_of(weights_, window->block, window->part, args_);
  visit_(run);
  ops::fill(run.block.grad_of(run.own), 0);
  shelf_.leave();
  if (++visited_ < shelf_.windows().size()) return;
  (void)shelf_.next();
  going_ = false;
}

// Zeros, and not sums that begin anew (fresh_sums.h), as windows are left: a run that goes on from a
// checkpoint takes the same way as one that did not stop.
void DueUpdate::zero_grads() {
  if (error_) std::rethrow_exception(error_);
  for (const WeightBlock& block : weights_.blocks())
    if (block.grads && (!going_ || block.kind.role == Role::kept)) ops::fill(block.grads, 0);
}

void DueLender::lend(int layer, Way way) {
  if (way == Way::backward)
    due_.finish();
  else
    due_.until(first_ + layer + (inner_ != nullptr ? 1 : 0));
  if (inner_ != nullptr) inner_->lend(layer, way);
}

void DueLender::take_back(int layer, Way way) noexcept {
  if (inner_ != nullptr) inner_->take_back(layer, way);
}

}  // namespace weft
