// A bucket is a run of a block's gradients; a rank's own part of it lies where it always lies.
#include "weft/optim/grad_reduction.h"

#include <algorithm>

namespace weft {

GradReduction::GradReduction(Weights& weights, Communicator& tensor_parallel, ReduceWhen when)
    : weights_(weights), tensor_parallel_(tensor_parallel), when_(when) {
  if (weights_.device().exact()) tree_.emplace(weights_);
  for (WeightBlock& block : weights_.blocks())
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
  if (tree_) return tree_->added();
  Counted& counted = parameters_[std::size_t(parameter)];
  ++counted.added;
  Leaving& bucket = buckets_[counted.leaving];
  // What tensor-parallel ranks have parts of is added among them first, which must not interrupt backward.
  if (when_ == ReduceWhen::after_backward || bucket.block->kind.partial) return;
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
  const Tensor grads = leaving.block->grads.slice(0, bucket.at, bucket.elements);
  if (!data.cut()) return under_way_.add(data.circle->all_reduce(grads, Reduce::sum));
  const OwnedPart& own = leaving.block->owned[leaving.bucket];
  under_way_.add(data.circle->reduce_scatter(leaving.block->grads.slice(0, own.at, own.count), grads));
}

void GradReduction::finish() {
  open_ = false;
  if (tensor_parallel_.size() > 1)
    for (const WeightBlock& block : weights_.blocks())
      if (block.kind.partial) tensor_parallel_.all_reduce(block.grads, Reduce::sum).wait();
  for (Leaving& bucket : buckets_)
    if (!bucket.left) leave(bucket);
  under_way_.wait();
  learn();
}

void GradReduction::learn() {
  for (Counted& parameter : parameters_)
    parameter.a_microbatch = parameter.added % microbatches_ == 0 ? parameter.added / microbatches_ : 0;
}

}  // namespace weft
