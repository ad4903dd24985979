#include "weft/backend/cuda/runtime.h"

#include "weft/base/error.h"

namespace weft::cuda {

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) fail(Kind::device, "cuda: ", what, ": ", cudaGetErrorString(error));
}

Stream::Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream"); }
Stream::~Stream() { cudaStreamDestroy(stream_); }
void Stream::await(const Event& event) const {
  check(cudaStreamWaitEvent(stream_, event.event_, 0), "a stream that waits for an event");
}

Event::Event() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "an event"); }
Event::~Event() { cudaEventDestroy(event_); }
void Event::record(const Stream& stream) const {
  check(cudaEventRecord(event_, stream.get()), "recording an event");
}
void Event::wait() const { check(cudaEventSynchronize(event_), "waiting for an event"); }
bool Event::reached() const {
  const cudaError_t error = cudaEventQuery(event_);
  if (error == cudaErrorNotReady) return false;
  check(error, "asking for an event");
  return true;
}

Pinned::Pinned(std::size_t bytes) { check(cudaMallocHost(&data_, bytes), "pinned memory"); }
Pinned::~Pinned() { cudaFreeHost(data_); }

Aside::Aside(std::size_t bytes) { check(cudaMalloc(&data_, bytes), "memory for copies"); }
Aside::~Aside() { cudaFree(data_); }

}  // namespace weft::cuda
