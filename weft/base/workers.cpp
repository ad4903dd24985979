#include "weft/base/workers.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>

#include "weft/base/error.h"

namespace weft {

// A loop under way. Parts are claimed one by one by the workers and by the thread that asked; it outlives the
// call because a worker may reach it in the queue only after all parts are taken.
struct Workers::Loop {
  Loop(std::int64_t n, int p, const std::function<void(std::int64_t, std::int64_t)>& b)
      : count(n), parts(p), body(&b), failures(static_cast<std::size_t>(p)) {}

  void run_parts() {
    for (int part = next++; part < parts; part = next++) {
      const Range range = part_of(count, part, parts);
      try {
        (*body)(range.begin, range.end);
      } catch (...) {
        failures[static_cast<std::size_t>(part)] = std::current_exception();
      }
      if (++done == parts) done.notify_all();
    }
  }
  void wait() const {
    for (int now = done; now < parts; now = done) done.wait(now);
  }

  std::int64_t count;
  int parts;
  const std::function<void(std::int64_t, std::int64_t)>* body;
  std::atomic<int> next = 0, done = 0;
  std::vector<std::exception_ptr> failures;
};

Workers::Workers(int threads) {
  if (threads < 0)
    fail(Kind::usage, "workers: ", threads, " threads were asked for, and at least 0 were expected");
  threads_.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  arrived_.notify_all();
  threads_.clear();
}

void Workers::parallel_for(std::int64_t count, const std::function<void(std::int64_t, std::int64_t)>& body,
                           int parts) {
  if (count <= 0) return;
  if (parts <= 0) parts = threads() + 1;
  parts = static_cast<int>(std::min<std::int64_t>(parts, count));
  const auto loop = std::make_shared<Loop>(count, parts, body);
  for (int i = 0; i < std::min(parts - 1, threads()); ++i) post([loop] { loop->run_parts(); });
  loop->run_parts();
  loop->wait();
  for (const std::exception_ptr& failure : loop->failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

void Workers::post(std::function<void()> task) {
  if (threads_.empty()) return task();
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(task));
  }
  arrived_.notify_one();
}

void Workers::work() {
  for (;;) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      arrived_.wait(lock, [this] { return closing_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      task = std::move(waiting_.front());
      waiting_.pop_front();
    }
    task();
  }
}

}  // namespace weft
