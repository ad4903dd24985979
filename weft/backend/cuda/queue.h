// The stream that computes, and who asks it: at once, or in lists that the GPU may know (graphs.h).
//
// Lists end where somebody needs the stream itself: to copy, to mark a place, to let another stream follow.
// That is also where the host waits, so nobody sees whether orders waited in a list or in the stream.
#pragma once

#include <gpu_notes.h>

#include <memory>
#include <mutex>

#include "weft/backend/cuda/graphs.h"

namespace weft::cuda {

class Queue {
 public:
  explicit Queue(bool graphs) : graphs_(graphs ? std::make_unique<Graphs>() : nullptr) {}

  void launch(const gpu::Launch& launch) {
    if (!graphs_) return ask(stream_.get(), launch);
    const std::lock_guard lock(mutex_);
    orders_.add(launch);
    end_long_list();
  }
  /// f(stream), a value that a list can keep (Orders::add).
  template <class F>
  void call(const void* kind, const F& f) {
    if (!graphs_) return f(stream_.get());
    const std::lock_guard lock(mutex_);
    orders_.add(kind, f);
    end_long_list();
  }
  /// The same of what the watcher of an emulated GPU is told. From any thread, so it launches nothing.
  template <class F>
  void note(const F& f) noexcept {
    if constexpr (gpu::real) return;
    if (!graphs_) return f(stream_.get());
    const std::lock_guard lock(mutex_);
    orders_.add(nullptr, f);
  }
  /// With all that was asked up to now in it.
  const Stream& now();
  /// See Graphs::forget.
  void forget_graphs();
  /// Nobody will ask for what was asked of it. The host waits for what is under way.
  void finish() const noexcept { stream_.finish(); }
  GraphCounts counts() const { return graphs_ ? graphs_->counts() : GraphCounts{}; }

 private:
  /// The GPU begins with the first orders while the host says the next ones.
  static constexpr std::size_t longest = 128;
  void end_long_list() {
    if (orders_.size() >= longest) graphs_->play(orders_, stream_);
  }

  Stream stream_;
  std::mutex mutex_;  // memory comes back from any thread
  Orders orders_;
  std::unique_ptr<Graphs> graphs_;  // null: everything at once
};

inline void ask(Queue& queue, const gpu::Launch& launch) { queue.launch(launch); }

}  // namespace weft::cuda
