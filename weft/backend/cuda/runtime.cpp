#include "weft/backend/cuda/runtime.h"

#include "weft/base/error.h"

namespace weft::cuda {

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) fail(Kind::device, "cuda: ", what, ": ", cudaGetErrorString(error));
}

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, device), "asking a GPU");
  return value;
}

Stream::Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream"); }
Stream::~Stream() { cudaStreamDestroy(stream_); }

Event::Event(Knows knows) {
  const unsigned flags = knows == Knows::when ? cudaEventDefault : cudaEventDisableTiming;
  check(cudaEventCreateWithFlags(&event_, flags), "an event");
}
Event::~Event() {
  if (event_) cudaEventDestroy(event_);
}
void Event::record(cudaStream_t stream) const {
  check(cudaEventRecord(event_, stream), "recording an event");
}
void Event::wait() const { check(cudaEventSynchronize(event_), "waiting for an event"); }
bool Event::reached() const {
  const cudaError_t error = cudaEventQuery(event_);
  if (error == cudaErrorNotReady) return false;
  check(error, "asking for an event");
  return true;
}
double Event::seconds_since(const Event& earlier) const {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, earlier.event_, event_), "the time between two events");
  return 1e-3 * double(milliseconds);
}
void Event::hold(cudaStream_t stream) const {
  check(cudaStreamWaitEvent(stream, event_, 0), "holding a stream");
}

int Events::record(cudaStream_t stream) {
  if (idle_.empty()) {
    idle_.push_back(int(all_.size()));
    all_.emplace_back(know_);
    idle_.reserve(all_.size());
  }
  const int number = idle_.back();
  idle_.pop_back();
  (*this)[number].record(stream);
  return number;
}

Pinned::Pinned(std::size_t bytes) { check(cudaMallocHost(&data_, bytes), "pinned memory"); }
Pinned::~Pinned() { cudaFreeHost(data_); }

Aside::Aside(std::size_t bytes) { check(cudaMalloc(&data_, bytes), "memory for copies"); }
Aside::~Aside() { cudaFree(data_); }

}  // namespace weft::cuda
