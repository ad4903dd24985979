// Two works of one rank by turns: while one waits for others, the other goes on.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "weft/base/inline_function.h"
#include "weft/nn/pass.h"
#include "weft/tensor/device.h"

namespace weft::pipe {

/// A work hands over where it waits (Beside), and is handed back to where the other waits: the places are the
/// program's, not the clock's, so ranks whose layers exchange messages say their words in one order. The
/// second work has a thread, because it has a stack of its own to keep; one of the two stands still always,
/// and what one did is seen by the other. Where a work fails, the other ends at its next waiting place, and
/// run() throws what failed.
class Turns final : public Beside {
 public:
  enum class Side : std::uint8_t { first, second };
  using Work = InlineFunction<64>;

  Turns() : thread_([this] { work_second(); }) {}
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;
  ~Turns() override;

  /// Told each time that a side was at work, by the time of its device.
  struct Clock {
    Device& device;
    std::function<void(Side, Stretch)> told;
  };
  /// Both, to their ends; the first one begins. Without a clock nobody is told.
  void run(Work first, Work second, const Clock* clock = nullptr);

  void go_on() override;
  void end() override;

 private:
  struct Abandoned {};
  bool other_ended() const { return ended_[1 - std::size_t(turn_)]; }
  void work(Work& one);
  void work_second();
  void hand_over();
  /// Whose turn it is was at work until now.
  void tell();

  // Read and written by whose turn it is.
  Work second_;
  std::array<bool, 2> ended_{};
  std::exception_ptr failure_;
  const Clock* clock_ = nullptr;
  std::optional<Instant> since_;

  std::mutex mutex_;
  std::condition_variable changed_;
  Side turn_ = Side::first;
  bool closing_ = false;
  std::jthread thread_;  // last: it reads the others
};

}  // namespace weft::pipe
