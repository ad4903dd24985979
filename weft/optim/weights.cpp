// Sorting parameters into blocks, and cutting the blocks back into parameters.
#include "weft/optim/weights.h"

#include <algorithm>

#include "weft/base/number.h"
#include "weft/ops/elementwise.h"

namespace weft {
namespace {

constexpr std::int64_t slot_unit = 16;  // elements of f32 in 64 bytes

WeightKind kind_of(const Parameter& parameter) {
  const bool counted = std::all_of(parameter.pieces.begin(), parameter.pieces.end(),
                                   [](const Piece& piece) { return piece.where.replica == 0; });
  return {.decays = parameter.decays, .at_the_ends = parameter.at_the_ends, .counted = counted};
}

}  // namespace

Weights::Weights(const std::function<void(const VisitParameter&)>& each, Device& device, Dtype compute,
                 For purpose)
    : device_(device) {
  each([this](Parameter& parameter) { place(parameter); });
  for (WeightBlock& block : blocks_) allocate(block, compute, purpose);
}

void Weights::place(Parameter& parameter) {
  const WeightKind kind = kind_of(parameter);
  auto block = std::find_if(blocks_.begin(), blocks_.end(), [&](const auto& b) { return b.kind == kind; });
  if (block == blocks_.end()) block = blocks_.insert(blocks_.end(), WeightBlock{.kind = kind});
  block->slots.push_back({&parameter, block->elements});
  block->elements += divide_up(parameter.shape.elements(), slot_unit) * slot_unit;
}

void Weights::allocate(WeightBlock& block, Dtype compute, For purpose) {
  const Shape flat{block.elements};
  block.values = ops::zeros(device_, flat, compute, Use::weights);
  block.master = block.values;
  if (purpose == For::training) {
    if (compute != Dtype::f32) block.master = ops::zeros(device_, flat, Dtype::f32, Use::optimizer);
    block.grads = ops::zeros(device_, flat, Dtype::f32, Use::gradients);
  }
  for (const WeightSlot& slot : block.slots) {
    slot.parameter->value = part(block.values, slot);
    if (block.grads) slot.parameter->grad.bind(part(block.grads, slot));
  }
}

void Weights::initialize(std::uint64_t seed) {
  for (const WeightBlock& block : blocks_)
    for (const WeightSlot& slot : block.slots)
      weft::initialize(*slot.parameter, part(block.master, slot), seed);
  publish();
}

void Weights::zero_grads() {
  for (const WeightBlock& block : blocks_)
    if (block.grads) ops::fill(block.grads, 0);
}

void Weights::publish() {
  for (const WeightBlock& block : blocks_)
    if (block.master.dtype() != block.values.dtype()) ops::copy_into(block.values, block.master);
}

Tensor Weights::part(const Tensor& flat, const WeightSlot& slot) {
  const Shape& shape = slot.parameter->shape;
  return flat.slice(0, slot.at, shape.elements()).view(shape);
}

}  // namespace weft
