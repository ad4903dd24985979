// What layers read of a file, read on a thread while others compute.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "weft/tensor/file_memory.h"
#include "weft/tensor/tensor.h"

namespace weft {

/// Reads in the order of asking. Who asks keeps the tensor until the read is over.
class Fetcher {
 public:
  /// Fetches for a device, at most so many at a time. Where that holds no numbers nothing is read.
  Fetcher(const Device& computes, std::size_t most);
  ~Fetcher();
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;

  using Ticket = std::uint64_t;
  /// `from` is a run of what lies in a file.
  [[nodiscard]] Ticket ask(const Tensor& to, const Tensor& from);
  /// Fails as the read did.
  void wait(Ticket ticket);
  /// Until nobody writes to the tensor any more, whatever became of it.
  void settle(Ticket ticket) noexcept;

 private:
  struct Read {
    Tensor to, from;
  };
  void read_all();

  std::vector<Read> reads_;  // a ring, by ticket
  std::mutex mutex_;
  std::condition_variable changed_;
  Ticket asked_ = 0, done_ = 0;
  bool stop_ = false;
  std::exception_ptr error_;
  std::thread reader_;
};

}  // namespace weft
