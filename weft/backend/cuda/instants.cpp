#include "weft/backend/cuda/instants.h"

namespace weft::cuda {

// Whoever asks may be another thread than the one that computes.
bool StreamInstants::over(int note) {
  check(cudaSetDevice(device_), "choosing a GPU");
  return events_[note].reached();
}

double StreamInstants::seconds_between(int earlier, int later) {
  return events_[later].seconds_since(events_[earlier]);
}

}  // namespace weft::cuda
