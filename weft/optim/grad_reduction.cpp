// A bucket is a run of a block's gradients; a rank's own part of it lies where it always lies.
#include "weft/optim/grad_reduction.h"

#include <algorithm>
#include <utility>

#include "weft/ops/elementwise.h"

namespace weft {
namespace {

/// visit(gradient, its place among all of them) for every piece of a bucket that neighbours hold too.
template <class Visit>
void each_shared(const WeightBlock& block, const WeightBucket& bucket, const Tensor& whole, const Tensor& all,
                 const Visit& visit) {
  std::int64_t at = 0;
  for (const WeightSlot& slot : block.slots_of(bucket)) {
    const Piece& shared = slot.parameter->pieces.back();
    const std::int64_t count = shared.where.local.elements();
    visit(whole.slice(0, slot.at - bucket.at + shared.at, count), all.slice(0, at, count));
    at += count;
  }
}

std::int64_t shared_elements(const WeightBlock& block, const WeightBucket& bucket) {
  std::int64_t elements = 0;
  for (const WeightSlot& slot : block.slots_of(bucket))
    elements += slot.parameter->pieces.back().where.local.elements();
  return elements;
}

}  // namespace

GradReduction::GradReduction(Weights& weights, ReduceWhen when, const SumRules& sums, AddFirst first)
    : weights_(weights),
      when_(when),
      order_(sums.tree_of_sequences() ? AddFirst::microbatches : first),
      narrow_(weights),
      shares_(weights) {
  if (sums.tree_of_sequences()) tree_.emplace(weights_);
  for (WeightBlock& block : weights_.blocks()) {
    Communicator* terms = terms_of(block);
    Communicator* neighbours = neighbours_of(block);
    for (std::size_t i = 0; i < block.buckets.size(); ++i) {
      const WeightBucket& bucket = block.buckets[i];
      int expected = 0;
      for (const WeightSlot& slot : block.slots_of(bucket)) {
        Parameter& parameter = *slot.parameter;
        parameter.grad.listen(this, int(parameters_.size()));
        parameters_.push_back({.leaving = buckets_.size()});
        expected += parameter.uses;
      }
      buckets_.push_back(
          {.block = &block, .bucket = i, .terms = terms, .neighbours = neighbours, .uses = expected});
      if (buckets_.back().cut())
        buckets_.back().fresh = FreshSums(block.slots_of(bucket), bucket.at, bucket.elements);
    }
  }
}

GradReduction::~GradReduction() {
  for (const WeightBlock& block : weights_.blocks())
    for (const WeightSlot& slot : block.slots) slot.parameter->grad.listen(nullptr, 0);
}

Communicator* GradReduction::terms_of(const WeightBlock& block) const {
  if (weights_.data().mesh == nullptr || block.kind.partial.empty()) return nullptr;
  Communicator& circle = weights_.data().mesh->along(block.kind.partial);
  return circle.size() > 1 ? &circle : nullptr;
}

Communicator* GradReduction::neighbours_of(const WeightBlock& block) const {
  const Neighbours& shared = block.kind.shared;
  if (weights_.data().mesh == nullptr || shared.ranks == 1 || !shared.partial) return nullptr;
  return &weights_.data().mesh->neighbours(shared.along, shared.ranks);
}

void GradReduction::begin(int microbatches, GradsOf of) {
  microbatches_ = microbatches;
  of_ = of;
  left_early_ = 0;
  for (Leaving& bucket : buckets_) {
    bucket.waits_for = 0;
    bucket.left = bucket.sent = false;
  }
  for (Counted& parameter : parameters_) {
    parameter.added = 0;
    buckets_[parameter.leaving].waits_for += parameter.a_microbatch * microbatches;
  }
  for (Leaving& bucket : buckets_)
    if (bucket.cut()) bucket.waits_for = bucket.uses * (order_ == AddFirst::ranks ? 1 : microbatches);
  if (tree_) tree_->begin(microbatches);
  open_ = true;
}

void GradReduction::added(int parameter) {
  if (!open_) return;
  if (tree_) tree_->added(parameter);
  narrow_.added(parameter);
  Counted& counted = parameters_[std::size_t(parameter)];
  Leaving& bucket = buckets_[counted.leaving];
  if (bucket.cut()) return count_down(bucket);
  if (tree_) return;
  ++counted.added;
  if (when_ == ReduceWhen::after_backward) return;
  if (counted.a_microbatch == 0 || --bucket.waits_for > 0) return;
  const auto known = [&](const Counted& c) { return &buckets_[c.leaving] != &bucket || c.a_microbatch > 0; };
  if (!std::ranges::all_of(parameters_, known)) return;
  set_out(bucket);
  ++left_early_;
}

void GradReduction::count_down(Leaving& bucket) {
  if (--bucket.waits_for > 0) return;
  bucket.waits_for = bucket.uses;
  set_out(bucket);
  ++left_early_;
}

void GradReduction::make_room(int parameter) {
  if (narrow_.hold(parameter)) return narrow_.make_room(parameter);
  Leaving& leaving = buckets_[parameters_[std::size_t(parameter)].leaving];
  const WeightBucket& bucket = leaving.place();
  leaving.room = empty(weights_.device(), {bucket.elements}, Dtype::f32, Use::gradients);
  for (const WeightSlot& slot : leaving.block->slots_of(bucket))
    slot.parameter->grad.bind(Weights::part(leaving.room, slot, bucket.at));
  leaving.fresh.begin(leaving.room);
}

/// What was added leaves; what is added next gets another room.
void GradReduction::close(Leaving& leaving) {
  const WeightBucket& bucket = leaving.place();
  for (const WeightSlot& slot : leaving.block->slots_of(bucket)) slot.parameter->grad.bind({});
  leaving.going = std::exchange(leaving.room, Tensor());
  if (!leaving.going)  // nobody added anything, and others wait for it
    leaving.going = ops::zeros(weights_.device(), {bucket.elements}, Dtype::f32, Use::gradients);
}

void GradReduction::drop_rooms() {
  narrow_.drop();
  for (Leaving& bucket : buckets_)
    if (bucket.room) {
      close(bucket);
      bucket.going = Tensor();
    }
}

void GradReduction::set_out(Leaving& bucket) {
  go_on();
  bucket.left = true;
  for (const WeightSlot& slot : bucket.block->slots_of(bucket.place()))
    if (slot.parameter->grad.here()) (void)slot.parameter->grad.sum();  // zeros where nobody added anything
  if (bucket.cut())
    close(bucket);
  else
    narrow_.close(std::size_t(&bucket - buckets_.data()));
  if (!bucket.terms && !bucket.neighbours) return leave(bucket);
  add_parts(bucket);
  first_ = &bucket;
}

void GradReduction::add_parts(Leaving& leaving) {
  const WeightBlock& block = *leaving.block;
  const WeightBucket& bucket = leaving.place();
  const Tensor whole = leaving.whole();
  if (leaving.terms) {
    parts_ = leaving.terms->all_reduce(whole, Reduce::sum);
    return;
  }
  shared_ = empty(whole.device(), {shared_elements(block, bucket)}, whole.dtype(), Use::communication);
  each_shared(block, bucket, whole, shared_,
              [](const Tensor& grads, const Tensor& packed) { ops::copy_into(packed, grads); });
  parts_ = leaving.neighbours->all_reduce(shared_, Reduce::sum);
}

void GradReduction::go_on() {
  if (!first_) return;
  Leaving& leaving = *std::exchange(first_, nullptr);
  parts_.wait();
  if (const Tensor shared = std::exchange(shared_, Tensor()))
    each_shared(*leaving.block, leaving.place(), leaving.whole(), shared,
                [](const Tensor& grads, const Tensor& packed) { ops::copy_into(grads, packed); });
  leave(leaving);
}

void GradReduction::leave(Leaving& leaving) {
  const Readers& readers = leaving.block->readers;
  const Dtype wire = weights_.data().wire;
  const bool first = !std::exchange(leaving.sent, true);
  if (readers.ranks() == 1 || of_ == GradsOf::own_samples) return;
  if (leaving.cut())
    return shares_.send(*leaving.block, leaving.bucket, std::exchange(leaving.going, Tensor()),
                        first ? GradShares::Arrive::in_its_place : GradShares::Arrive::on_top);
  Tensor grads = leaving.whole();
  if (wire != grads.dtype()) {
    leaving.wire = empty(grads.device(), grads.shape(), wire, Use::communication);
    ops::copy_into(leaving.wire, grads);
    grads = leaving.wire;
  }
  if (!readers.cut()) return under_way_.add(readers.circle->all_reduce(grads, Reduce::sum));
  under_way_.add(readers.circle->reduce_scatter(own_part(leaving), grads));
}

/// Of what travels, where this rank keeps its part of the sum.
Tensor GradReduction::own_part(const Leaving& leaving) const {
  const OwnedPart& own = leaving.block->owned[leaving.bucket];
  if (!leaving.wire) return leaving.block->grads.slice(0, own.at, own.count);
  return leaving.wire.slice(0, own.at - leaving.place().at, own.count);
}

// What was summed in f32 and rounded once is widened again where it belongs.
void GradReduction::arrive(Leaving& leaving) const {
  if (!leaving.wire) return;
  const WeightBucket& bucket = leaving.place();
  const Tensor summed = std::exchange(leaving.wire, Tensor());
  if (!leaving.block->readers.cut())
    return ops::copy_into(leaving.block->grads.slice(0, bucket.at, bucket.elements), summed);
  const OwnedPart& own = leaving.block->owned[leaving.bucket];
  ops::copy_into(leaving.block->grads.slice(0, own.at, own.count),
                 summed.slice(0, own.at - bucket.at, own.count));
}

void GradReduction::finish() {
  open_ = false;
  for (Leaving& bucket : buckets_)
    if (!bucket.left || bucket.room) set_out(bucket);
  go_on();
  under_way_.wait();
  shares_.finish();
  for (Leaving& bucket : buckets_) arrive(bucket);
  if (of_ == GradsOf::all_ranks) add_over_groups();
  learn();
}

// What several groups cut up each is added among ranks that keep the same parts, once a step.
void GradReduction::add_over_groups() {
  for (const Leaving& leaving : buckets_) {
    Communicator* twins = leaving.block->readers.twins;
    if (!twins) continue;
    const Tensor share = leaving.block->grad_of(leaving.block->owned[leaving.bucket]);
    if (weights_.data().wire == share.dtype()) {
      under_way_.add(twins->all_reduce(share, Reduce::sum));
      continue;
    }
    const Tensor rounded = empty(share.device(), share.shape(), weights_.data().wire, Use::communication);
    ops::copy_into(rounded, share);
    twins->all_reduce(rounded, Reduce::sum).wait();
    ops::copy_into(share, rounded);
  }
  under_way_.wait();
}

void GradReduction::learn() {
  for (Counted& parameter : parameters_)
    parameter.a_microbatch = parameter.added % microbatches_ == 0 ? parameter.added / microbatches_ : 0;
}

}  // namespace weft
