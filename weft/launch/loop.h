// One thread that waits for everything at once: ends of processes, signals, bytes, and times.
#pragma once

#include <sys/epoll.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "weft/base/descriptor.h"

namespace weft::launch {

/// Nothing is polled: without events and times it sleeps in the kernel. What is called may watch, forget, and
/// set times, also its own; a descriptor that was forgotten is not heard again.
class Loop {
 public:
  using Clock = std::chrono::steady_clock;
  using Heard = std::function<void(std::uint32_t events)>;
  /// Where time leaps, no second passes in which nothing happens: hours of a network are tried in a moment.
  enum class Time { passes, leaps };

  explicit Loop(Time time = Time::passes);
  /// What after() counts from.
  Clock::time_point now() const { return Clock::now() + leapt_; }
  void watch(int fd, std::uint32_t events, Heard heard);
  void change(int fd, std::uint32_t events);
  void forget(int fd);
  /// Calls act once, after so many seconds; the number is for cancel(), where a past one is fine.
  std::uint64_t after(double seconds, std::function<void()> act);
  void cancel(std::uint64_t number);

  /// Until stop().
  void run();
  void stop() { stopped_ = true; }

 private:
  struct Watched {
    std::uint32_t generation = 0;
    Heard heard;
  };
  int milliseconds_to_next() const;
  void leap();
  void call_what_is_due();
  Time time_;
  Clock::duration leapt_{};
  Descriptor epoll_;
  std::vector<Watched> watched_;  // by descriptor
  std::map<std::pair<Clock::time_point, std::uint64_t>, std::function<void()>> times_;
  std::map<std::uint64_t, Clock::time_point> time_of_;
  std::uint64_t next_number_ = 1;
  bool stopped_ = false;
};

/// On the clock that boards, rounds and pulses are told on.
inline double seconds_of(Loop::Clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}
inline double seconds_now() { return seconds_of(Loop::Clock::now()); }

}  // namespace weft::launch
