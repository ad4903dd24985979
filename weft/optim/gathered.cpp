// Asking counts: a bucket that two layers read is gathered once where their turns follow each other.
#include "weft/optim/gathered.h"

#include <algorithm>
#include <utility>

#include "weft/base/number.h"
#include "weft/ops/blocks.h"
#include "weft/ops/elementwise.h"

namespace weft {

GatheredWeights::GatheredWeights(const Weights& weights, const Stage& stage)
    : weights_(weights), code_{.bits = 8, .block = weights.data().weight_block} {
  for (const auto& layer : stage.layers) {
    Reads forward, backward;
    layer->each_read([&](const Parameter& p) { note(p, forward); });
    layer->each_read_back([&](const Parameter& p) { note(p, backward); });
    reads_[std::size_t(Way::forward)].push_back(std::move(forward));
    reads_[std::size_t(Way::backward)].push_back(std::move(backward));
  }
  const auto in_file = [](const Bucket& b) { return b.block->in_file; };
  if (std::ranges::any_of(buckets_, in_file))
    fetcher_ = std::make_unique<Fetcher>(weights.device(), buckets_.size());
}

void GatheredWeights::note(const Parameter& parameter, Reads& reads) {
  for (const WeightBlock& block : weights_.blocks()) {
    const auto slot = std::ranges::find(block.slots, &parameter, &WeightSlot::parameter);
    if (slot == block.slots.end() || !block.lent()) continue;
    const auto place = std::ranges::find_if(block.buckets, [&](const WeightBucket& b) {
      return b.at <= slot->at && slot->at < b.at + b.elements;
    });
    const auto number = std::size_t(place - block.buckets.begin());
    auto known = std::ranges::find_if(
        buckets_, [&](const Bucket& b) { return b.block == &block && b.number == number; });
    if (known == buckets_.end()) {
      known = buckets_.insert(known, Bucket{.block = &block, .number = number, .whole = {}, .coming = {}});
      if (const Communicator* near = block.in_file ? nullptr : block.readers.near)
        known->second = empty(weights_.device(), {exact(place->elements, std::int64_t{near->size()})},
                              block.values.dtype(), Use::weights);
    }
    const auto read = std::size_t(known - buckets_.begin());
    if (std::ranges::find(reads, read) == reads.end()) reads.push_back(read);
  }
}

void GatheredWeights::lend(int layer, Way way) {
  int& ahead = ahead_[std::size_t(way)];
  const int asked = std::exchange(ahead, -1);
  if (asked != layer) ask(layer, way);
  if (asked >= 0 && asked != layer) leave(asked, way);  // a pass was broken off
  const int next = layer + (way == Way::forward ? 1 : -1);
  if (next >= 0 && next < int(reads_[0].size())) {
    ask(next, way);
    ahead = next;
  }
  for (const std::size_t read : reads(layer, way)) gather_fetched(buckets_[read]);
  for (const std::size_t read : reads(layer, way)) arrive(buckets_[read]);
}

void GatheredWeights::take_back(int layer, Way way) noexcept { leave(layer, way); }

void GatheredWeights::ask(int layer, Way way) {
  for (const std::size_t read : reads(layer, way)) {
    Bucket& bucket = buckets_[read];
    if (bucket.asked++ > 0) continue;
    const WeightBlock& block = *bucket.block;
    if (block.in_file) {
      ask_file(bucket);
      continue;
    }
    const bool here = bucket.second && bucket.copied == weights_.version();
    bucket.arrives = weights_.version();
    if (!here) {
      gather(bucket, block.value_of(block.owned[bucket.number]));
      continue;
    }
    bucket.whole = room_for(bucket);
    bucket.coming = block.readers.near->all_gather(bucket.whole, bucket.second);
  }
}

Tensor GatheredWeights::room_for(const Bucket& bucket) const {
  return empty(weights_.device(), {bucket.block->buckets[bucket.number].elements},
               bucket.block->values.dtype(), Use::weights);
}

bool GatheredWeights::packs(const Bucket& bucket) const {
  return code_.block > 0 && bucket.block->holds_matrices(bucket.block->buckets[bucket.number]);
}

/// From all ranks.
void GatheredWeights::gather(Bucket& bucket, const Tensor& share) {
  Communicator& circle = *bucket.block->readers.circle;
  if (!packs(bucket)) {
    bucket.whole = room_for(bucket);
    bucket.coming = circle.all_gather(bucket.whole, share);
    return;
  }
  const std::int64_t ranks = circle.size(), bytes = packed_bytes(share.elements(), code_);
  const Tensor mine = empty(share.device(), {bytes}, Dtype::u8, Use::communication);
  ops::pack_blocks_into(mine, share, code_);
  bucket.packed = empty(share.device(), {ranks, bytes}, Dtype::u8, Use::communication);
  bucket.coming = circle.all_gather(bucket.packed.view({ranks * bytes}), mine);
}

void GatheredWeights::unpack(Bucket& bucket) const {
  if (!bucket.packed) return;
  bucket.whole = room_for(bucket);
  const std::int64_t ranks = bucket.packed.dim(0), share = exact(bucket.whole.elements(), ranks);
  for (std::int64_t r = 0; r < ranks; ++r)
    ops::unpack_blocks_into(bucket.whole.slice(0, r * share, share), bucket.packed.at(0, r), code_);
  bucket.packed = Tensor();
}

void GatheredWeights::ask_file(Bucket& bucket) {
  const WeightBlock& block = *bucket.block;
  const OwnedPart own = block.share_of(bucket.number);
  const Tensor there = block.values.slice(0, own.kept, own.count);
  bucket.share = empty(weights_.device(), {own.count}, there.dtype(), Use::weights);
  bucket.fetch = fetcher_->ask(bucket.share, there);
}

// Ranks ask in one order, and here they are asked for it again in that order.
void GatheredWeights::gather_fetched(Bucket& bucket) {
  if (!bucket.share) return;
  fetcher_->wait(bucket.fetch);
  const Readers& readers = bucket.block->readers;
  if (readers.cut(CutUp::weights))
    gather(bucket, bucket.share);
  else
    bucket.whole = bucket.share;
  bucket.share = Tensor();
}

void GatheredWeights::arrive(Bucket& bucket) {
  bucket.coming.wait();
  unpack(bucket);
  if (bucket.second && bucket.copied != bucket.arrives) {
    const std::int64_t count = bucket.second.elements();
    ops::copy_into(bucket.second, bucket.whole.slice(0, bucket.block->readers.near->rank() * count, count));
    bucket.copied = bucket.arrives;
  }
  const WeightBucket& place = bucket.block->buckets[bucket.number];
  for (const WeightSlot& slot : bucket.block->slots_of(place))
    slot.parameter->value = Weights::part(bucket.whole, slot, place.at);
}

void GatheredWeights::leave(int layer, Way way) {
  for (const std::size_t read : reads(layer, way)) {
    Bucket& bucket = buckets_[read];
    if (--bucket.asked > 0) continue;
    if (bucket.share) fetcher_->settle(bucket.fetch);
    bucket.share = Tensor();
    bucket.coming.wait();
    bucket.packed = Tensor();
    for (const WeightSlot& slot : bucket.block->slots_of(bucket.block->buckets[bucket.number]))
      slot.parameter->value = Tensor();
    bucket.whole = Tensor();
  }
}

}  // namespace weft
