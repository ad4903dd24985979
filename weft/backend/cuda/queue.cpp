#include "weft/backend/cuda/queue.h"

namespace weft::cuda {

const Stream& Queue::now() {
  if (graphs_) {
    const std::lock_guard lock(mutex_);
    graphs_->play(orders_, stream_);
  }
  return stream_;
}

void Queue::forget_graphs() {
  if (!graphs_) return;
  now();
  graphs_->forget();
}

}  // namespace weft::cuda
