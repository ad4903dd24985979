// A few words between ranks at once.
#pragma once

#include <array>

#include "weft/comm/pending.h"

namespace weft {

/// Communicators have room for some dozens of unfinished words: the oldest is finished when there are many.
class UnderWay {
 public:
  void add(Pending pending) {
    ring_[next_].wait();
    ring_[next_] = std::move(pending);
    next_ = (next_ + 1) % ring_.size();
  }
  void wait() {
    for (std::size_t i = 0; i < ring_.size(); ++i) ring_[(next_ + i) % ring_.size()].wait();
  }

 private:
  std::array<Pending, 24> ring_;
  std::size_t next_ = 0;
};

}  // namespace weft
