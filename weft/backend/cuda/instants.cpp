#include "weft/backend/cuda/instants.h"

namespace weft::cuda {

int StreamInstants::note(const Stream& stream) {
  if (idle_.empty()) {
    idle_.push_back(int(events_.size()));
    events_.emplace_back(Event::Knows::when);
    idle_.reserve(events_.size());
  }
  const int note = idle_.back();
  idle_.pop_back();
  event(note).record(stream);
  return note;
}

// Whoever asks may be another thread than the one that computes.
bool StreamInstants::over(int note) {
  check(cudaSetDevice(device_), "choosing a GPU");
  return event(note).reached();
}

double StreamInstants::seconds_between(int earlier, int later) {
  return event(later).seconds_since(event(earlier));
}

}  // namespace weft::cuda
