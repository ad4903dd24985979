// Handles of CUDA's runtime that give themselves back, and errors as the house says them.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace weft::cuda {

/// Fails with Kind::device: "cuda: what: reason".
void check(cudaError_t error, const char* what);

/// What a GPU says of itself.
int attribute(cudaDeviceAttr which, int device);

class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }
  /// The host waits for all that was asked of it. For destructors, so it says nothing of errors.
  void finish() const noexcept { cudaStreamSynchronize(stream_); }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  /// Which costs less than to know when, too.
  enum class Knows : bool { whether, when };
  explicit Event(Knows knows = Knows::whether);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  void record(const Stream& stream) const { record(stream.get()); }
  void record(cudaStream_t stream) const;
  /// The host waits; at once where nothing was recorded.
  void wait() const;
  /// Whether what was recorded has been reached. Does not wait.
  bool reached() const;
  /// Of two that know when, and have been reached.
  double seconds_since(const Event& earlier) const;
  /// What the stream is asked for from now on comes behind it, and the host goes on; at once where nothing
  /// was recorded.
  void hold(const Stream& stream) const { hold(stream.get()); }
  void hold(cudaStream_t stream) const;

 private:
  cudaEvent_t event_ = nullptr;
};

/// Events that are lent by number.
class Events {
 public:
  explicit Events(Event::Knows know) : know_(know) {}
  /// The number of one that is recorded now.
  int record(cudaStream_t stream);
  const Event& operator[](int number) const { return all_[std::size_t(number)]; }
  void give_back(int number) noexcept { idle_.push_back(number); }

 private:
  Event::Knows know_;
  std::vector<Event> all_;
  std::vector<int> idle_;  // has room for all
};

/// Pages of the host that the device reads and writes by itself.
class Pinned {
 public:
  explicit Pinned(std::size_t bytes);
  ~Pinned();
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  void* data_ = nullptr;
};

/// Memory of the GPU that is no tensor's, so the pool neither lends nor counts it.
class Aside {
 public:
  explicit Aside(std::size_t bytes);
  ~Aside();
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  void* data_ = nullptr;
};

}  // namespace weft::cuda
