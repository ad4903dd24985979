// The same tensors come in the same order every time, so rooms are found again by their place.
#include "weft/checkpoint/snapshot.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "weft/tensor/host_memory.h"

namespace weft::checkpoint {
namespace {

/// The pieces that are this rank's to write, and the stretch of memory they lie in.
struct Stretch {
  std::vector<Piece> pieces;
  std::int64_t first = std::numeric_limits<std::int64_t>::max(), end = 0;
};

Stretch to_write(const Named& named) {
  Stretch out;
  for (const Piece& piece : named.pieces) {
    if (piece.where.replica != 0) continue;
    out.pieces.push_back(piece);
    out.first = std::min(out.first, piece.at);
    out.end = std::max(out.end, piece.at + piece.where.local.elements());
  }
  for (Piece& piece : out.pieces) piece.at -= out.first;
  return out;
}

}  // namespace

Snapshot::Snapshot() : memory_(host_memory()) {}

Snapshot::~Snapshot() = default;

Tensor Snapshot::room_for(std::int64_t elements, Dtype dtype) {
  if (next_ == rooms_.size()) rooms_.emplace_back();
  Tensor& room = rooms_[next_++];
  if (!room || room.elements() != elements || room.dtype() != dtype) {
    room = Tensor();  // given back first, or there would be room for both
    room = empty(*memory_, {elements}, dtype);
  }
  return room;
}

void Snapshot::take(std::span<const Named> mine) {
  copies_.clear();
  next_ = 0;
  Fence last;  // of one device: behind it are those before it
  for (const Named& named : mine) {
    check(named);
    Stretch stretch = to_write(named);
    if (stretch.pieces.empty()) continue;
    const Tensor& tensor = named.tensor;
    const Tensor room = room_for(stretch.end - stretch.first, tensor.dtype());
    const Fence copied = tensor.device().copy_to_host(
        room.address(), *tensor.storage(), (tensor.offset() + stretch.first) * size_of(tensor.dtype()),
        room.bytes());
    if (copied) last = copied;
    copies_.push_back({named.name, room, std::move(stretch.pieces)});
  }
  last.wait();
  rooms_.resize(next_);
}

std::int64_t Snapshot::bytes() const {
  std::int64_t sum = 0;
  for (const Tensor& room : rooms_) sum += room.bytes();
  return sum;
}

}  // namespace weft::checkpoint
