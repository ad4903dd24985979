#include "weft/optim/narrow_sums.h"

#include "weft/ops/elementwise.h"

namespace weft {

NarrowSums::NarrowSums(Weights& weights) : weights_(weights) {
  for (WeightBlock& block : weights_.blocks())
    for (std::size_t i = 0; i < block.buckets.size(); ++i) {
      const bool narrow = !block.readers.cut(CutUp::gradients) && block.grads.dtype() != Dtype::f32;
      Room room{.block = &block, .bucket = i, .narrow = narrow, .first_slot = slots_.size(), .sums = {}};
      for (const WeightSlot& slot : block.slots_of(room.place())) {
        slots_.push_back({rooms_.size(), &slot});
        room.uses += slot.parameter->uses;
      }
      rooms_.push_back(std::move(room));
    }
}

void NarrowSums::make_room(int parameter) {
  Room& room = rooms_[slots_[std::size_t(parameter)].room];
  const WeightBucket& bucket = room.place();
  room.sums = ops::cast(room.kept(), Dtype::f32, Use::gradients);
  room.waits_for = room.uses;
  for (const WeightSlot& slot : room.block->slots_of(bucket))
    slot.parameter->grad.bind(Weights::part(room.sums, slot, bucket.at));
}

void NarrowSums::added(int parameter) {
  Slot& mine = slots_[std::size_t(parameter)];
  Room& room = rooms_[mine.room];
  if (!room.narrow) return;
  --room.waits_for;
  if (mine.added++ == 0) ++room.halfway;
  const bool last = mine.added >= mine.slot->parameter->uses;
  if (last) {
    mine.added = 0;
    --room.halfway;
  }
  if (room.waits_for <= 0 && room.halfway == 0) return close(mine.room);
  if (!last) return;
  const Tensor kept = Weights::part(room.block->grads, *mine.slot);
  const Tensor sum = Weights::part(room.sums, *mine.slot, room.place().at);
  ops::copy_into(kept, sum);
  ops::copy_into(sum, kept);
}

void NarrowSums::close(std::size_t bucket) {
  Room& room = rooms_[bucket];
  if (!room.sums) return;
  ops::copy_into(room.kept(), room.sums);
  forget(room);
}

void NarrowSums::forget(Room& room) {
  const WeightBucket& bucket = room.place();
  for (const WeightSlot& slot : room.block->slots_of(bucket)) slot.parameter->grad.bind({});
  for (int i = 0; i < bucket.slots; ++i) slots_[room.first_slot + std::size_t(i)].added = 0;
  room.halfway = 0;
  room.sums = Tensor();
}

void NarrowSums::drop() {
  for (Room& room : rooms_)
    if (room.sums) forget(room);
}

}  // namespace weft
