#include "weft/backend/pool.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/format.h"

namespace weft {

Pool::Pool(Device& device, std::unique_ptr<Ground> ground, std::int64_t limit)
    : device_(&device), ground_(std::move(ground)), limit_(limit), small_(*ground_), large_(*ground_) {}

StorageRef Pool::take(std::int64_t bytes, Use use) {
  // Storage::bytes is what was asked for; a piece of no bytes could not be found again.
  constexpr std::int64_t most = std::int64_t(1) << 60;
  if (bytes < 0 || bytes > most)
    fail(Kind::internal, device_->name(), ": ", bytes, " bytes of memory asked for");
  const std::int64_t counted = (bytes + Arena::grain - 1) / Arena::grain * Arena::grain;
  const std::lock_guard lock(mutex_);
  MemoryPiece& piece = find(counted, use);
  meter_.hold(use, counted);
  return StorageRef(&piece.block.emplace(*device_, piece.data, bytes, use, piece));
}

void Pool::give(Storage& storage) noexcept {
  const std::lock_guard lock(mutex_);
  MemoryPiece& piece = static_cast<MemoryBlock&>(storage).piece();
  const std::int64_t counted = (storage.bytes() + Arena::grain - 1) / Arena::grain * Arena::grain;
  meter_.release(storage.use(), counted);
  piece.block.reset();
  (piece.bytes <= small ? small_ : large_).give(piece);
}

MemoryPiece& Pool::find(std::int64_t bytes, Use use) {
  if (limit_ > 0 && meter_.total + bytes > limit_) refuse(bytes, use, "out of memory");
  const std::int64_t size = std::max(bytes, Arena::grain);
  Arena& arena = size <= small ? small_ : large_;
  if (MemoryPiece* piece = arena.take(size)) return *piece;
  if (forbidden_) refuse(bytes, use, "the steady state was declared and no free block fits");
  MemoryPiece* piece = arena.take_fresh(size);
  if (!piece) refuse(bytes, use, "out of memory");
  ++meter_.fresh_blocks;
  return *piece;
}

void Pool::refuse(std::int64_t bytes, Use use, const char* reason) const {
  const std::string limit = limit_ > 0 ? text(" of the ", human_bytes(limit_), " allowed") : "";
  fail(Kind::device, device_->name(), ": ", reason, ": ", human_bytes(bytes), " for ", name(use),
       " asked for, ", human_bytes(meter_.total), limit, " held", held(),
       forbidden_ ? "; every step must ask for what the first one did"
                  : "; lower {batch.micro}, or {eval.micro} if it was evaluating, recompute activations or "
                    "cut the model "
                    "over more ranks");
}

/// " (weights 1.0 GiB, activations 2.0 GiB)"
std::string Pool::held() const {
  std::vector<std::string> parts;
  for (int i = 0; i < uses; ++i) {
    const std::int64_t bytes = meter_.now[std::size_t(i)];
    if (bytes > 0) parts.push_back(text(name(Use(i)), " ", human_bytes(bytes)));
  }
  return parts.empty() ? "" : text(" (", join(parts, ", "), ")");
}

void Pool::forbid_fresh(bool forbidden) {
  const std::lock_guard lock(mutex_);
  forbidden_ = forbidden;
}

MemoryMeter Pool::meter() const {
  const std::lock_guard lock(mutex_);
  return meter_;
}

void Pool::forget_peaks() {
  const std::lock_guard lock(mutex_);
  meter_.forget_peaks();
}

std::int64_t Pool::reserved() const {
  const std::lock_guard lock(mutex_);
  return small_.reserved() + large_.reserved();
}

}  // namespace weft
