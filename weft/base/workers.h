// Threads that wait for work: loops cut into fixed parts, and single tasks. For reading, packing and
// encoding; kernels have their own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "weft/base/range.h"

namespace weft {

/// The part-th of `parts` contiguous ranges of 0 … count - 1, the longer ones first. It depends on nothing
/// else.
constexpr Range part_of(std::int64_t count, int part, int parts) {
  const std::int64_t each = count / parts, rest = count % parts;
  const auto start = [&](std::int64_t p) { return each * p + (p < rest ? p : rest); };
  return {start(part), start(part + 1)};
}

/// A pool. Work may be handed in from any thread, also from a worker: a worker that waits for a loop does its
/// parts meanwhile, so nested loops do not lock up. The destructor finishes what was handed in.
class Workers {
 public:
  /// 0 threads: everything runs in the thread that asks.
  explicit Workers(int threads);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers();

  int threads() const { return static_cast<int>(threads_.size()); }

  /// Calls body(begin, end) for part_of(count, p, parts) of every p, with `parts` = threads() + 1 unless it
  /// is given; returns when all are done. Which thread runs a part is open, which elements are in it is not.
  /// If parts throw, the first part's exception is thrown.
  void parallel_for(std::int64_t count, const std::function<void(std::int64_t begin, std::int64_t end)>& body,
                    int parts = 0);

  /// Runs the task some time; its value or exception is in the future. A worker must not wait for it: all of
  /// them might.
  template <class Task>
  [[nodiscard]] std::future<std::invoke_result_t<Task>> submit(Task task) {
    using Result = std::invoke_result_t<Task>;
    auto packaged = std::make_shared<std::packaged_task<Result()>>(std::move(task));
    auto future = packaged->get_future();
    post([packaged] { (*packaged)(); });
    return future;
  }

 private:
  struct Loop;
  void post(std::function<void()> task);
  void work();

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::function<void()>> waiting_;
  bool closing_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace weft
