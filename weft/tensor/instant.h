// When a device came to a place in its order, and how long it was from one place to another.
//
// A device may do later what it is asked for, so the host's clock says how long asking took, not doing. What
// is timed is therefore timed between instants, which cost the host no wait.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <utility>

namespace weft {

/// Who knows the instants of a device that works later, by their notes.
class Instants {
 public:
  virtual ~Instants() = default;
  /// Whether the device has come there. Does not wait.
  virtual bool over(int note) = 0;
  virtual double seconds_between(int earlier, int later) = 0;
  virtual void forget(int note) noexcept = 0;
};

/// Of a processor known at once; of a device that works later when it has come there.
class [[nodiscard]] Instant {
 public:
  /// The host's, now.
  Instant() : at_(std::chrono::steady_clock::now()) {}
  Instant(std::shared_ptr<Instants> knows, int note) : knows_(std::move(knows)), note_(note) {}
  Instant(Instant&&) noexcept = default;
  Instant& operator=(Instant&& other) noexcept;
  ~Instant() {
    if (knows_) knows_->forget(note_);
  }
  /// Whether it is known. Does not wait.
  bool over() const { return !knows_ || knows_->over(note_); }
  /// Seconds since an earlier one of the same device; both are over.
  double since(const Instant& earlier) const;

 private:
  std::shared_ptr<Instants> knows_;
  int note_ = 0;
  std::chrono::steady_clock::time_point at_;
};

struct Stretch {
  Instant from, to;
};

/// How long a device was at something, all in all.
class Spent {
 public:
  /// Counts as soon as it is over.
  void add(Stretch stretch);
  /// Of what is over by now.
  double seconds();
  /// What is not over counts later.
  void forget() { seconds_ = 0; }

 private:
  void count_what_is_over();

  double seconds_ = 0;
  std::deque<Stretch> going_;  // in the order of the device
};

}  // namespace weft
