// Keeps freed memory for the next asking, and counts who holds how much.
#pragma once

#include <memory>
#include <mutex>

#include "weft/backend/arena.h"
#include "weft/tensor/device.h"

namespace weft {

/// The memory of one device. In the steady state it uses neither the system nor the heap. Tensors may be
/// dropped from any thread. Small blocks live apart from large ones, which they would otherwise keep from
/// merging.
class Pool {
 public:
  /// limit in bytes, 0: none but the machine's.
  Pool(Device& device, std::unique_ptr<Ground> ground, std::int64_t limit);

  /// Counted as bytes rounded up to 64.
  StorageRef take(std::int64_t bytes, Use use);
  void give(Storage& storage) noexcept;
  void forbid_fresh(bool forbidden);
  MemoryMeter meter() const;
  void forget_peaks();
  /// Address space in use: what is held, and what was and waits.
  std::int64_t reserved() const;

 private:
  static constexpr std::int64_t small = 16 << 10;
  MemoryPiece& find(std::int64_t bytes, Use use);
  [[noreturn]] void refuse(std::int64_t bytes, Use use, const char* reason) const;
  std::string held() const;

  Device* device_;
  std::unique_ptr<Ground> ground_;
  std::int64_t limit_;
  mutable std::mutex mutex_;
  Arena small_, large_;
  MemoryMeter meter_;
  bool forbidden_ = false;
};

}  // namespace weft
