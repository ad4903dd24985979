#include "weft/report/outlet.h"

#include <exception>

#include "weft/base/error.h"

namespace weft::report {

Outlet::Outlet(std::vector<std::unique_ptr<Sink>> sinks, std::size_t capacity, Say say)
    : sinks_(std::move(sinks)), capacity_(capacity), say_(std::move(say)), thread_([this] { run(); }) {}

Outlet::~Outlet() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
  for (auto& sink : sinks_) attempt(sink, [](Sink& s) { s.flush(); });
  if (dropped_ > 0) say_(text(dropped_, " entries were dropped because their sinks were too slow"));
}

void Outlet::write(Entry entry) {
  {
    std::lock_guard lock(mutex_);
    if (queue_.size() >= capacity_) {
      ++dropped_;
      return;
    }
    queue_.push_back(std::move(entry));
  }
  changed_.notify_all();
}

void Outlet::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return queue_.empty() && !busy_; });
}

void Outlet::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const Entry entry = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    write_to_sinks(entry);
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

void Outlet::write_to_sinks(const Entry& entry) {
  for (auto& sink : sinks_)
    attempt(sink, [&](Sink& s) { std::visit([&s](const auto& e) { s.write(e); }, entry); });
}

void Outlet::attempt(std::unique_ptr<Sink>& sink, const std::function<void(Sink&)>& act) {
  if (!sink) return;
  try {
    act(*sink);
  } catch (const std::exception& e) {
    say_(text(sink->name(), " is not written any more: ", e.what()));
    sink.reset();
  }
}

}  // namespace weft::report
