// Gradients that are kept in fewer bits than f32: summed in f32 while a microbatch adds to them, then
// rounded.
#pragma once

#include <cstddef>
#include <vector>

#include "weft/optim/weights.h"

namespace weft {

/// A bucket gets room in f32 when one of its gradients is added to, filled with what is kept; the room goes
/// when all of a microbatch's have been. Every parameter is rounded once a microbatch, behind its last use
/// in it, whatever others of its bucket do meanwhile: in which order a schedule pays debts changes no bit. A
/// wrong number of uses (Parameter::uses) costs a rounding, never a term.
class NarrowSums {
 public:
  explicit NarrowSums(Weights& weights);

  /// Whether this is where a parameter's sum lies. Parameters are numbered by block, bucket and slot.
  bool hold(int parameter) const { return rooms_[slots_[std::size_t(parameter)].room].narrow; }
  void make_room(int parameter);
  void added(int parameter);
  /// What was added to a bucket is in the sums; buckets are numbered by block.
  void close(std::size_t bucket);
  bool open(std::size_t bucket) const { return bool(rooms_[bucket].sums); }
  /// Forgets what was added since the last rounding.
  void drop();

 private:
  struct Slot {
    std::size_t room;
    const WeightSlot* slot;
    int added = 0;  // of this microbatch
  };
  struct Room {
    WeightBlock* block;
    std::size_t bucket;
    bool narrow;
    std::size_t first_slot;
    int uses = 0;       // gradients that a microbatch adds
    int waits_for = 0;  // before the room goes
    int halfway = 0;    // parameters that wait for their next use
    Tensor sums;        // f32, while somebody adds
    const WeightBucket& place() const { return block->buckets[bucket]; }
    Tensor kept() const { return block->grads.slice(0, place().at, place().elements); }
  };
  void forget(Room& room);

  Weights& weights_;
  std::vector<Slot> slots_;
  std::vector<Room> rooms_;
};

}  // namespace weft
