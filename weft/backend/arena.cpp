// Lists of free pieces by size, eight to an octave, with a bitmap of those that are not empty.
#include "weft/backend/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>

namespace weft {
namespace {

constexpr std::int64_t first_segment = std::int64_t(1) << 30;

std::int64_t round_up(std::int64_t bytes, std::int64_t to) { return (bytes + to - 1) / to * to; }

/// Sizes in units of the grain: 1 to 7 have lists of their own, then eight lists to each octave.
std::size_t bin_of(std::int64_t bytes) {
  const auto units = std::uint64_t(bytes / Arena::grain);
  if (units < 8) return std::size_t(units);
  const auto octave = std::size_t(std::bit_width(units)) - 1;
  return (octave - 2) * 8 + std::size_t(units >> (octave - 3) & 7U);
}

class SystemGround final : public Ground {
 public:
  Mapping map(std::int64_t bytes) override {
    // Room to start at a huge page; what is never touched costs nothing.
    const auto whole = std::size_t(bytes + Arena::step);
    void* memory = mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return {};
    auto* first = static_cast<std::byte*>(memory);
    const auto ahead = std::size_t(-std::bit_cast<std::intptr_t>(memory)) % std::size_t(Arena::step);
    if (ahead > 0) munmap(first, ahead);
    munmap(first + ahead + bytes, std::size_t(Arena::step) - ahead);
    // A refusal only means small pages.
    static_cast<void>(madvise(first + ahead, std::size_t(bytes), MADV_HUGEPAGE));
    return {true, first + ahead};
  }
  bool open(std::byte* data, std::int64_t bytes) override {
    return mprotect(data, std::size_t(bytes), PROT_READ | PROT_WRITE) == 0;
  }
  void unmap(std::byte* data, std::int64_t bytes) noexcept override { munmap(data, std::size_t(bytes)); }
};

class CountingGround final : public Ground {
 public:
  Mapping map(std::int64_t) override { return {true, nullptr}; }
  void unmap(std::byte*, std::int64_t) noexcept override {}
};

}  // namespace

std::unique_ptr<Ground> system_ground() { return std::make_unique<SystemGround>(); }
std::unique_ptr<Ground> counting_ground() { return std::make_unique<CountingGround>(); }

Arena::~Arena() {
  for (const Segment& segment : segments_) ground_->unmap(segment.data, segment.bytes);
}

MemoryPiece* Arena::take(std::int64_t bytes) {
  const std::size_t bin = bin_of(bytes);
  if (MemoryPiece* found = smallest(bin, bytes)) return cut(*found, bytes);
  // Whatever hangs in a later list is large enough.
  const std::size_t from = bin + 1;
  for (std::size_t word = from / 64; word < filled_.size(); ++word) {
    std::uint64_t open = filled_[word];
    if (word == from / 64) open &= ~std::uint64_t(0) << from % 64;
    if (open == 0) continue;
    const std::size_t next = word * 64 + std::size_t(std::countr_zero(open));
    return cut(*smallest(next, bytes), bytes);
  }
  return nullptr;
}

MemoryPiece* Arena::take_fresh(std::int64_t bytes) {
  const auto missing = [&] {
    const MemoryPiece* last = segments_.back().last;
    return round_up(bytes - (last && last->free ? last->bytes : 0), step);
  };
  const auto fits = [&] {
    return !segments_.empty() && missing() <= segments_.back().bytes - segments_.back().used;
  };
  if (!fits() && !open_segment(bytes)) return nullptr;
  if (!extend(missing())) return nullptr;
  return cut(*segments_.back().last, bytes);
}

/// Each segment is as large as all before it together; the smallest that serves where the system has no room.
bool Arena::open_segment(std::int64_t bytes) {
  std::int64_t wanted = first_segment;
  for (const Segment& segment : segments_) wanted += segment.bytes;
  const std::int64_t least = round_up(bytes, step);
  for (const std::int64_t size : {std::max(wanted, least), least}) {
    const Ground::Mapping span = ground_->map(size);
    if (!span.granted) continue;
    segments_.push_back({span.data, size, 0, nullptr});
    return true;
  }
  return false;
}

/// Moves the end of the last segment's used part.
bool Arena::extend(std::int64_t bytes) {
  Segment& segment = segments_.back();
  if (segment.data && !ground_->open(segment.data + segment.used, bytes)) return false;
  MemoryPiece& fresh = node();
  fresh.data = segment.data ? segment.data + segment.used : nullptr;
  fresh.bytes = bytes;
  fresh.before = segment.last;
  fresh.segment = int(segments_.size()) - 1;
  if (segment.last) segment.last->after = &fresh;
  segment.last = &fresh;
  segment.used += bytes;
  reserved_ += bytes;
  give(fresh);
  return true;
}

MemoryPiece* Arena::smallest(std::size_t bin, std::int64_t bytes) const {
  MemoryPiece* best = nullptr;
  for (MemoryPiece* piece = free_[bin]; piece; piece = piece->next) {
    if (piece->bytes < bytes || (best && piece->bytes >= best->bytes)) continue;
    best = piece;
    if (best->bytes == bytes) break;
  }
  return best;
}

/// Takes the front of a free piece; the rest stays free.
MemoryPiece* Arena::cut(MemoryPiece& piece, std::int64_t bytes) {
  unhang(piece);
  if (piece.bytes > bytes) {
    MemoryPiece& rest = node();
    rest.data = piece.data ? piece.data + bytes : nullptr;
    rest.bytes = piece.bytes - bytes;
    rest.segment = piece.segment;
    rest.before = &piece;
    rest.after = piece.after;
    Segment& segment = segments_[std::size_t(piece.segment)];
    (rest.after ? rest.after->before : segment.last) = &rest;
    piece.after = &rest;
    piece.bytes = bytes;
    hang(rest);
  }
  return &piece;
}

void Arena::give(MemoryPiece& piece) noexcept {
  MemoryPiece* whole = &piece;
  if (whole->after && whole->after->free) {
    unhang(*whole->after);
    absorb(*whole, *whole->after);
  }
  if (whole->before && whole->before->free) {
    whole = whole->before;
    unhang(*whole);
    absorb(*whole, *whole->after);
  }
  hang(*whole);
}

void Arena::absorb(MemoryPiece& into, MemoryPiece& next) noexcept {
  into.bytes += next.bytes;
  into.after = next.after;
  (into.after ? into.after->before : segments_[std::size_t(into.segment)].last) = &into;
  drop(next);
}

void Arena::hang(MemoryPiece& piece) noexcept {
  const std::size_t bin = bin_of(piece.bytes);
  piece.free = true;
  piece.previous = nullptr;
  piece.next = free_[bin];
  if (piece.next) piece.next->previous = &piece;
  free_[bin] = &piece;
  filled_[bin / 64] |= std::uint64_t(1) << bin % 64;
}

void Arena::unhang(MemoryPiece& piece) noexcept {
  const std::size_t bin = bin_of(piece.bytes);
  piece.free = false;
  (piece.previous ? piece.previous->next : free_[bin]) = piece.next;
  if (piece.next) piece.next->previous = piece.previous;
  if (!free_[bin]) filled_[bin / 64] &= ~(std::uint64_t(1) << bin % 64);
}

/// Pieces come by the thousand, so that a steady state that cuts a little differently still needs no heap.
MemoryPiece& Arena::node() {
  constexpr int batch = 1024;
  if (!spare_) {
    for (int i = 0; i < batch; ++i) drop(nodes_.emplace_back());
  }
  MemoryPiece& piece = *spare_;
  spare_ = piece.next;
  piece.free = false;
  piece.before = piece.after = piece.previous = piece.next = nullptr;
  return piece;
}

void Arena::drop(MemoryPiece& piece) noexcept {
  piece.free = false;
  piece.next = spare_;
  spare_ = &piece;
}

}  // namespace weft
