// Signals as descriptors: nothing is interrupted, nothing is global.
#pragma once

#include <csignal>
#include <functional>
#include <vector>

#include "weft/launch/loop.h"

namespace weft::launch {

/// Without those that whoever started this process wants it to live through, as nohup does with SIGHUP:
/// waited for, they would be heard all the same.
std::vector<int> not_ignored(std::vector<int> signals);

/// What a supervisor listens for: the signals that end its job, those that it hands on, and its workers'
/// deaths.
std::vector<int> heard_signals(std::vector<int> ending);

/// While it lives, the signals are heard by the loop and not delivered, and who no longer reads what we write
/// ends nothing.
class Signals {
 public:
  Signals(Loop& loop, const std::vector<int>& wanted, std::function<void(int number)> heard);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

 private:
  Loop& loop_;
  sigset_t before_{};
  struct sigaction pipe_before_ {};
  Descriptor fd_;
};

}  // namespace weft::launch
