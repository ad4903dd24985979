// A bucket is a run of a block's gradients; a rank's own part of it lies where it always lies.
#include "weft/optim/grad_reduction.h"

#include <algorithm>
#include <utility>

#include "weft/ops/elementwise.h"

namespace weft {

GradReduction::GradReduction(Weights& weights, Communicator& tensor_parallel, ReduceWhen when)
    : weights_(weights), tensor_parallel_(tensor_parallel), when_(when) {
  if (weights_.device().exact()) tree_.emplace(weights_);
  for (WeightBlock& block : weights_.blocks()) {
    const int sharers = block.kind.sharers;
    if (sharers > 1 && !tree_ && !sharers_)
      sharers_ = tensor_parallel.split(tensor_parallel.rank() / sharers, tensor_parallel.rank());
    for (std::size_t i = 0; i < block.buckets.size(); ++i) {
      const WeightBucket& bucket = block.buckets[i];
      for (int k = 0; k < bucket.slots; ++k) {
        block.slots[std::size_t(bucket.first_slot) + std::size_t(k)].parameter->grad.listen(
            this, int(parameters_.size()));
        parameters_.push_back({.leaving = buckets_.size()});
      }
      buckets_.push_back({.block = &block, .bucket = i});
    }
  }
}

GradReduction::~GradReduction() {
  for (const WeightBlock& block : weights_.blocks())
    for (const WeightSlot& slot : block.slots) slot.parameter->grad.listen(nullptr, 0);
}

void GradReduction::begin(int microbatches) {
  microbatches_ = microbatches;
  left_early_ = 0;
  for (Leaving& bucket : buckets_) bucket.waits_for = bucket.left = 0;
  for (Counted& parameter : parameters_) {
    parameter.added = 0;
    buckets_[parameter.leaving].waits_for += parameter.a_microbatch * microbatches;
  }
  if (tree_) tree_->begin(microbatches);
  open_ = true;
}

void GradReduction::added(int parameter) {
  if (!open_) return;
  if (tree_) return tree_->added(parameter);
  Counted& counted = parameters_[std::size_t(parameter)];
  ++counted.added;
  Leaving& bucket = buckets_[counted.leaving];
  // What tensor-parallel ranks have parts of is added among them first, which must not interrupt backward.
  const WeightKind& kind = bucket.block->kind;
  if (when_ == ReduceWhen::after_backward || kind.partial || kind.sharers > 1) return;
  if (counted.a_microbatch == 0 || --bucket.waits_for > 0) return;
  const auto known = [&](const Counted& c) { return &buckets_[c.leaving] != &bucket || c.a_microbatch > 0; };
  if (!std::ranges::all_of(parameters_, known)) return;
  leave(bucket);
  ++left_early_;
}

void GradReduction::leave(Leaving& leaving) {
  leaving.left = true;
  const DataParallel& data = weights_.data();
  if (data.ranks() == 1) return;
  const WeightBucket& bucket = leaving.block->buckets[leaving.bucket];
  Tensor grads = leaving.block->grads.slice(0, bucket.at, bucket.elements);
  if (data.wire != grads.dtype()) {
    leaving.wire = empty(grads.device(), grads.shape(), data.wire, Use::communication);
    ops::copy_into(leaving.wire, grads);
    grads = leaving.wire;
  }
  if (!data.cut()) return under_way_.add(data.circle->all_reduce(grads, Reduce::sum));
  under_way_.add(data.circle->reduce_scatter(own_part(leaving), grads));
}

/// Of what travels, where this rank keeps its part of the sum.
Tensor GradReduction::own_part(const Leaving& leaving) const {
  const OwnedPart& own = leaving.block->owned[leaving.bucket];
  if (!leaving.wire) return leaving.block->grads.slice(0, own.at, own.count);
  return leaving.wire.slice(0, own.at - leaving.block->buckets[leaving.bucket].at, own.count);
}

// What was summed in f32 and rounded once is widened again where it belongs.
void GradReduction::arrive(Leaving& leaving) const {
  if (!leaving.wire) return;
  const WeightBucket& bucket = leaving.block->buckets[leaving.bucket];
  const Tensor summed = std::exchange(leaving.wire, Tensor());
  if (!weights_.data().cut())
    return ops::copy_into(leaving.block->grads.slice(0, bucket.at, bucket.elements), summed);
  const OwnedPart& own = leaving.block->owned[leaving.bucket];
  ops::copy_into(leaving.block->grads.slice(0, own.at, own.count),
                 summed.slice(0, own.at - bucket.at, own.count));
}

void GradReduction::finish() {
  open_ = false;
  add_among_tensor_parallel_ranks();
  for (Leaving& bucket : buckets_)
    if (!bucket.left) leave(bucket);
  under_way_.wait();
  for (Leaving& bucket : buckets_) arrive(bucket);
  learn();
}

void GradReduction::add_among_tensor_parallel_ranks() {
  if (tensor_parallel_.size() == 1) return;
  for (const WeightBlock& block : weights_.blocks()) {
    if (block.kind.partial) tensor_parallel_.all_reduce(block.grads, Reduce::sum).wait();
    if (!sharers_ || block.kind.sharers == 1) continue;
    for (const WeightSlot& slot : block.slots) {
      const Piece& shared = slot.parameter->pieces.back();
      under_way_.add(sharers_->all_reduce(
          block.grads.slice(0, slot.at + shared.at, shared.where.local.elements()), Reduce::sum));
    }
    under_way_.wait();
  }
}

void GradReduction::learn() {
  for (Counted& parameter : parameters_)
    parameter.a_microbatch = parameter.added % microbatches_ == 0 ? parameter.added / microbatches_ : 0;
}

}  // namespace weft
