// Address space cut into pieces: best fit, split when taken, merged again when given back.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "weft/tensor/storage.h"

namespace weft {

struct MemoryPiece;

/// What a tensor holds while a piece is taken: storage that knows its piece.
class MemoryBlock final : public Storage {
 public:
  MemoryBlock(Device& device, std::byte* data, std::int64_t bytes, Use use, MemoryPiece& piece)
      : Storage(device, data, bytes, use), piece_(&piece) {}
  MemoryPiece& piece() const { return *piece_; }

 private:
  MemoryPiece* piece_;
};

/// A run of bytes, free or taken. Its neighbours in memory are `before` and `after`; a free piece also hangs
/// in the list of its size.
struct MemoryPiece {
  std::byte* data = nullptr;  // null where there is no memory, only its arithmetic
  std::int64_t bytes = 0;
  int segment = 0;
  bool free = false;
  MemoryPiece* before = nullptr;
  MemoryPiece* after = nullptr;
  MemoryPiece* previous = nullptr;
  MemoryPiece* next = nullptr;
  std::optional<MemoryBlock> block;
};

/// Where address space comes from: the system, or nowhere for a device that only counts.
class Ground {
 public:
  virtual ~Ground() = default;
  struct Mapping {
    bool granted = false;
    std::byte* data = nullptr;
  };
  /// Address space that costs nothing, and may not be touched before it is opened.
  virtual Mapping map(std::int64_t bytes) = 0;
  /// A part of it is about to be used; false where the system refuses.
  [[nodiscard]] virtual bool open(std::byte*, std::int64_t) { return true; }
  virtual void unmap(std::byte* data, std::int64_t bytes) noexcept = 0;
};
/// Anonymous memory in huge pages where the system has them.
std::unique_ptr<Ground> system_ground();
/// Grants everything and holds nothing.
std::unique_ptr<Ground> counting_ground();

/// Which piece serves which request depends on the order of requests alone, so an arena without memory knows
/// what one with memory reserves. A segment is a large span whose used part grows step by step; everything
/// that lies side by side in it can be merged, so what is reserved stays near the peak of what is held. What
/// lies behind the used part is nobody's memory: a limit on a process's data (ulimit -d) does not see it.
class Arena {
 public:
  static constexpr std::int64_t grain = 64;
  static constexpr std::int64_t step = std::int64_t(2) << 20;  // a huge page

  explicit Arena(Ground& ground) : ground_(&ground) {}  // which must outlive it
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  /// A taken piece of so many bytes, a multiple of grain; null where no free piece fits.
  MemoryPiece* take(std::int64_t bytes);
  /// The same after asking the ground for more; null where it refuses.
  MemoryPiece* take_fresh(std::int64_t bytes);
  void give(MemoryPiece& piece) noexcept;
  /// Bytes in use by segments, free pieces among them.
  std::int64_t reserved() const { return reserved_; }

 private:
  static constexpr std::size_t bins = 512;
  struct Segment {
    std::byte* data;
    std::int64_t bytes;  // of address space
    std::int64_t used;   // of it, from its start
    MemoryPiece* last;
  };

  bool open_segment(std::int64_t bytes);
  bool extend(std::int64_t bytes);
  MemoryPiece* smallest(std::size_t bin, std::int64_t bytes) const;
  MemoryPiece* cut(MemoryPiece& piece, std::int64_t bytes);
  void absorb(MemoryPiece& into, MemoryPiece& next) noexcept;
  void hang(MemoryPiece& piece) noexcept;
  void unhang(MemoryPiece& piece) noexcept;
  MemoryPiece& node();
  void drop(MemoryPiece& piece) noexcept;

  Ground* ground_;
  std::vector<Segment> segments_;
  std::array<MemoryPiece*, bins> free_{};
  std::array<std::uint64_t, bins / 64> filled_{};
  std::deque<MemoryPiece> nodes_;
  MemoryPiece* spare_ = nullptr;
  std::int64_t reserved_ = 0;
};

}  // namespace weft
