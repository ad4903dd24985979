// Time that only goes forward: how long something took, and whether it took too long.
#pragma once

#include <chrono>

namespace weft {

/// Seconds since it was made or restarted.
class Stopwatch {
 public:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }
  /// The seconds so far; counts from 0 again.
  double restart() {
    const auto now = Clock::now();
    const double passed = std::chrono::duration<double>(now - start_).count();
    start_ = now;
    return passed;
  }

 private:
  Clock::time_point start_ = Clock::now();
};

/// A moment after which something is late. Made without seconds it never comes.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  Deadline() = default;
  explicit Deadline(double seconds) : at_(later(seconds)) {}

  [[nodiscard]] bool passed() const { return Clock::now() >= at_; }
  /// For wait_until() of condition variables and futures.
  [[nodiscard]] Clock::time_point at() const { return at_; }
  /// 0 once it has passed.
  [[nodiscard]] double seconds_left() const {
    const double left = std::chrono::duration<double>(at_ - Clock::now()).count();
    return left > 0 ? left : 0;
  }

 private:
  // More than a hundred years would overflow the clock, and is never.
  static Clock::time_point later(double seconds) {
    constexpr double century = 100 * 365.25 * 86400;
    if (!(seconds < century)) return Clock::time_point::max();
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  Clock::time_point at_ = Clock::time_point::max();
};

}  // namespace weft
