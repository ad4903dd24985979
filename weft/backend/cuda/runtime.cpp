#include "weft/backend/cuda/runtime.h"

#include "weft/base/error.h"

namespace weft::cuda {

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) fail(Kind::device, "cuda: ", what, ": ", cudaGetErrorString(error));
}

Stream::Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream"); }
Stream::~Stream() { cudaStreamDestroy(stream_); }

Event::Event() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "an event"); }
Event::~Event() { cudaEventDestroy(event_); }
void Event::record(const Stream& stream) const {
  check(cudaEventRecord(event_, stream.get()), "recording an event");
}
void Event::wait() const { check(cudaEventSynchronize(event_), "waiting for an event"); }

Pinned::Pinned(std::size_t bytes) { check(cudaMallocHost(&data_, bytes), "pinned memory"); }
Pinned::~Pinned() { cudaFreeHost(data_); }

}  // namespace weft::cuda
