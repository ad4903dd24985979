// The launcher's own stdout and stderr: whole lines of many workers, without ever blocking the loop.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "weft/launch/loop.h"

namespace weft::launch {

/// Lines wait here while whoever reads the other end is slow. Writers ask full() and, when it says so, wait
/// for ready(): a slow reader slows the workers and loses nothing, and the loop goes on.
class Console {
 public:
  Console(Loop& loop, int fd);
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  void write(std::string_view lines);
  bool full() const { return pending_.size() - written_ > enough; }
  /// Calls act once there is room again; forgotten with cancel_ready().
  void when_ready(const void* who, std::function<void()> act) { waiting_[who] = std::move(act); }
  void cancel_ready(const void* who) { waiting_.erase(who); }
  /// Writes what waits, for as long as `seconds` if the reader is slow; for the end.
  void flush(double seconds);

 private:
  static constexpr std::size_t enough = 1 << 20;
  void push();
  bool push_some();
  Loop& loop_;
  int fd_;
  bool is_file_;  // never makes anybody wait, and epoll does not take it
  bool watched_ = false;
  std::string pending_;  // from written_ on
  std::size_t written_ = 0;
  std::map<const void*, std::function<void()>> waiting_;
};

}  // namespace weft::launch
