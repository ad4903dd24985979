#include "weft/pipe/turns.h"

#include <utility>

namespace weft::pipe {

Turns::~Turns() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
}

void Turns::run(Work first, Work second, const Clock* clock) {
  second_ = std::move(second);
  ended_ = {};
  clock_ = clock;
  if (clock_) since_ = clock_->device.instant();
  work(first);
  while (!other_ended()) hand_over();
  tell();
  since_.reset();
  second_.reset();
  if (std::exception_ptr failure = std::exchange(failure_, nullptr)) std::rethrow_exception(failure);
}

void Turns::work(Work& one) {
  try {
    one();
  } catch (const Abandoned&) {  // the other's failure is the one to tell
  } catch (...) {
    if (!failure_) failure_ = std::current_exception();
  }
  ended_[std::size_t(turn_)] = true;
}

void Turns::work_second() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return closing_ || turn_ == Side::second; });
      if (closing_) return;
    }
    work(second_);
    tell();
    const std::lock_guard lock(mutex_);
    turn_ = Side::first;
    changed_.notify_all();
  }
}

void Turns::tell() {
  if (!clock_) return;
  try {
    clock_->told(turn_, {std::move(*since_), clock_->device.instant()});
    since_ = clock_->device.instant();
  } catch (...) {  // a device that broke says so where it is asked for its time
    if (!failure_) failure_ = std::current_exception();
  }
}

void Turns::hand_over() {
  std::unique_lock lock(mutex_);
  const Side mine = turn_;
  tell();
  turn_ = mine == Side::first ? Side::second : Side::first;
  changed_.notify_all();
  changed_.wait(lock, [&] { return turn_ == mine; });
}

void Turns::go_on() {
  if (other_ended()) return;
  hand_over();
  if (failure_) throw Abandoned();
}

void Turns::end() {
  while (!other_ended()) go_on();
}

}  // namespace weft::pipe
