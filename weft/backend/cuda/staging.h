// Copies between the host's ordinary memory and the GPU's, by way of pinned pages, in the order of a stream.
//
// Going up, the host fills a page while the ones before travel, and returns when all bytes are in pages: what
// it copied from is its own again. Coming down, bytes stay in their pages until somebody asks for the place
// in the device's order that they were given; a page that is wanted again hands over what it still holds.
#pragma once

#include <array>
#include <cstdint>

#include "weft/backend/cuda/runtime.h"

namespace weft::cuda {

class Staging {
 public:
  explicit Staging(const Stream& stream) : stream_(&stream), memory_(count * page_bytes) {}
  void up(void* to, const void* from, std::int64_t bytes);
  void down(void* to, const void* from, std::int64_t bytes, std::uint64_t place);
  /// Hands over what came down for places up to this one. The host waits for it.
  void hand_over(std::uint64_t place);

 private:
  static constexpr std::size_t count = 8, page_bytes = std::size_t(1) << 20;
  struct Page {
    Event arrived;       // what travels from it, or to it
    void* to = nullptr;  // of the host, where it came down
    std::size_t bytes = 0;
    std::uint64_t place = 0;
  };
  std::byte* memory_of(std::size_t page) const { return memory_.data() + page * page_bytes; }
  /// The page that was used longest ago, with nothing in it; its number.
  std::size_t next();
  void settle(std::size_t page);

  const Stream* stream_;
  Pinned memory_;
  std::array<Page, count> pages_;
  std::size_t turn_ = 0;
};

}  // namespace weft::cuda
