// Signals as descriptors: nothing is interrupted, nothing is global.
#pragma once

#include <csignal>
#include <functional>
#include <vector>

#include "weft/launch/loop.h"

namespace weft::launch {

/// What a supervisor listens for: the signals that end its job, those that it hands on, and its workers'
/// deaths.
std::vector<int> heard_signals(std::vector<int> ending);

/// While it lives, the signals are heard by the loop and not delivered.
class Signals {
 public:
  Signals(Loop& loop, const std::vector<int>& wanted, std::function<void(int number)> heard);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

 private:
  Loop& loop_;
  sigset_t before_{};
  Descriptor fd_;
};

}  // namespace weft::launch
