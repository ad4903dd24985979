// A copy of what a save would write, so that training goes on while it is written.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "weft/checkpoint/named.h"

namespace weft::checkpoint {

/// Holds its memory from one take() to the next: a run that saves in the background needs room for one copy
/// of what its rank writes, and never for two.
class Snapshot {
 public:
  Snapshot();
  ~Snapshot();
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  /// Copies the pieces of replica 0; the rest is nobody's to write here. Throws bad_alloc where the host has
  /// no room.
  void take(std::span<const Named> mine);
  std::span<const Named> named() const { return copies_; }
  std::int64_t bytes() const;

 private:
  Tensor room_for(std::int64_t elements, Dtype dtype);

  std::unique_ptr<Device> memory_;
  std::vector<Tensor> rooms_;  // in the order of the last take()
  std::size_t next_ = 0;
  std::vector<Named> copies_;
};

}  // namespace weft::checkpoint
