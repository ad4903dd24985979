// epoll for descriptors, an ordered map for times.
#include "weft/launch/loop.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "weft/base/error.h"

namespace weft::launch {

Loop::Loop(Time time) : time_(time), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) fail(Kind::device, "launch: the kernel gives no epoll: ", std::strerror(errno));
}

void Loop::watch(int fd, std::uint32_t events, Heard heard) {
  if (watched_.size() <= std::size_t(fd)) watched_.resize(std::size_t(fd) + 1);
  Watched& w = watched_[std::size_t(fd)];
  w.heard = std::move(heard);
  ++w.generation;
  epoll_event event{.events = events, .data = {.u64 = std::uint64_t{w.generation} << 32 | std::uint32_t(fd)}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    fail(Kind::device, "launch: cannot wait for descriptor ", fd, ": ", std::strerror(errno));
}

void Loop::change(int fd, std::uint32_t events) {
  const std::uint32_t generation = watched_[std::size_t(fd)].generation;
  epoll_event event{.events = events, .data = {.u64 = std::uint64_t{generation} << 32 | std::uint32_t(fd)}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Loop::forget(int fd) {
  if (fd < 0 || std::size_t(fd) >= watched_.size() || !watched_[std::size_t(fd)].heard) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  watched_[std::size_t(fd)].heard = nullptr;
  ++watched_[std::size_t(fd)].generation;
}

std::uint64_t Loop::after(double seconds, std::function<void()> act) {
  const auto when = now() + std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double>(std::min(seconds, 1e9)));
  const std::uint64_t number = next_number_++;
  times_.emplace(std::pair(when, number), std::move(act));
  time_of_.emplace(number, when);
  return number;
}

void Loop::cancel(std::uint64_t number) {
  const auto found = time_of_.find(number);
  if (found == time_of_.end()) return;
  times_.erase({found->second, number});
  time_of_.erase(found);
}

int Loop::milliseconds_to_next() const {
  if (times_.empty()) return -1;
  if (time_ == Time::leaps) return 0;
  const auto left = times_.begin()->first.first - now();
  const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::clamp<std::int64_t>(rounded, 0, 3'600'000));
}

void Loop::leap() {
  if (!times_.empty()) leapt_ += std::max(Clock::duration{}, times_.begin()->first.first - now());
}

void Loop::call_what_is_due() {
  while (!stopped_ && !times_.empty() && times_.begin()->first.first <= now()) {
    auto first = times_.extract(times_.begin());
    time_of_.erase(first.key().second);
    first.mapped()();
  }
}

void Loop::run() {
  stopped_ = false;
  std::array<epoll_event, 256> events{};
  while (!stopped_) {
    const int count = epoll_wait(epoll_.get(), events.data(), int(events.size()), milliseconds_to_next());
    if (count == 0 && time_ == Time::leaps) leap();
    if (count < 0 && errno != EINTR) fail(Kind::device, "launch: cannot wait: ", std::strerror(errno));
    for (int i = 0; i < count && !stopped_; ++i) {
      const std::uint64_t key = events[std::size_t(i)].data.u64;
      const Watched& w = watched_[std::size_t(key & 0xffffffffu)];
      if (w.generation != std::uint32_t(key >> 32) || !w.heard) continue;
      const Heard heard = w.heard;  // it may forget itself, and the table may grow
      heard(events[std::size_t(i)].events);
    }
    call_what_is_due();
  }
}

}  // namespace weft::launch
