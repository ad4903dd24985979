// What a device has been asked for: bytes by use with their peak, arithmetic by kind, traffic.
#pragma once

#include <array>
#include <cstdint>

#include "weft/tensor/storage.h"

namespace weft {

/// The kinds of arithmetic a time table distinguishes.
enum class Work : std::uint8_t { product, attention, norm, elementwise, loss, embedding, optimizer, other };
inline constexpr int works = 8;
const char* name(Work work);

struct Tally {
  std::int64_t calls = 0, flops = 0, bytes = 0;
  bool operator==(const Tally&) const = default;
};

/// Bytes that are held now and the most that were, by use and in all. Fed by the device's pool.
struct MemoryMeter {
  std::array<std::int64_t, uses> now{}, peak{};
  std::int64_t total = 0, total_peak = 0;
  std::int64_t fresh_blocks = 0;  // blocks asked of the system, ever
  bool operator==(const MemoryMeter&) const = default;

  void hold(Use use, std::int64_t bytes);
  void release(Use use, std::int64_t bytes);
  void forget_peaks();
};

/// Arithmetic and traffic by kind. Fed by ops, from shapes alone, so every device counts alike.
struct WorkMeter {
  std::array<Tally, works> by{};
  bool operator==(const WorkMeter&) const = default;
  void add(Work work, std::int64_t flops, std::int64_t bytes) {
    Tally& tally = by[std::size_t(work)];
    ++tally.calls;
    tally.flops += flops;
    tally.bytes += bytes;
  }
  std::int64_t flops() const;
};

}  // namespace weft
