// Where a task of products keeps its things, in floats from the start of its workspace.
#pragma once

#include <cstdint>

namespace weft::fast {

inline constexpr std::int64_t padding = 16;  // floats: a cache line, and what rows of a head are padded to
inline constexpr std::int64_t slack = 24;    // rows that a product may touch beyond its last

constexpr std::int64_t round_up(std::int64_t x, std::int64_t unit) { return (x + unit - 1) / unit * unit; }
constexpr std::int64_t pieces(std::int64_t x, std::int64_t unit) { return (x + unit - 1) / unit; }

/// Lays one thing after another.
class Layout {
 public:
  std::int64_t take(std::int64_t floats) {
    const std::int64_t at = total_;
    total_ += round_up(floats, padding);
    return at;
  }
  std::int64_t total() const { return total_; }

 private:
  std::int64_t total_ = 0;
};

/// Rows that are a multiple of 128 bytes longer than a tile is wide would put its columns into half of a
/// cache's sets.
constexpr std::int64_t row_step(std::int64_t d) {
  const std::int64_t whole = round_up(d, padding);
  return whole > 64 && whole % 32 == 0 ? whole + padding : whole;
}

}  // namespace weft::fast
