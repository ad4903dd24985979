// One thread that writes to all sinks, so that no step waits for a disk.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "weft/report/sink.h"

namespace weft::report {

/// Protocol: write() puts an entry in a queue of bounded length and returns; the thread writes it to every
/// sink. Where the queue is full the entry is dropped and counted; a sink that fails is told of once and not
/// written to again. The destructor writes what is queued, flushes, and says how much was dropped.
class Outlet {
 public:
  using Say = std::function<void(const std::string& sentence)>;
  Outlet(std::vector<std::unique_ptr<Sink>> sinks, std::size_t capacity, Say say);
  ~Outlet();
  Outlet(const Outlet&) = delete;
  Outlet& operator=(const Outlet&) = delete;

  using Entry = std::variant<StepRecord, Evaluation, Timers, Saved>;
  void write(Entry entry);
  /// Returns when everything written before has reached the sinks.
  void drain();

 private:
  void run();
  void write_to_sinks(const Entry& entry);
  void attempt(std::unique_ptr<Sink>& sink, const std::function<void(Sink&)>& act);

  std::vector<std::unique_ptr<Sink>> sinks_;
  std::size_t capacity_;
  Say say_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Entry> queue_;
  std::int64_t dropped_ = 0;
  bool busy_ = false, closing_ = false;
  std::thread thread_;
};

}  // namespace weft::report
