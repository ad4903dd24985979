#include "weft/backend/cuda/staging.h"

#include <algorithm>
#include <cstring>

namespace weft::cuda {

void Staging::settle(std::size_t page) {
  Page& it = pages_[page];
  it.arrived.wait();
  if (it.to) std::memcpy(it.to, memory_of(page), it.bytes);
  it.to = nullptr;
}

std::size_t Staging::next() {
  turn_ = (turn_ + 1) % count;
  settle(turn_);
  return turn_;
}

void Staging::up(void* to, const void* from, std::int64_t bytes) {
  auto* device = static_cast<std::byte*>(to);
  const auto* host = static_cast<const std::byte*>(from);
  for (auto left = std::size_t(bytes); left > 0;) {
    const std::size_t piece = std::min(left, page_bytes), page = next();
    std::memcpy(memory_of(page), host, piece);
    check(cudaMemcpyAsync(device, memory_of(page), piece, cudaMemcpyHostToDevice, stream_->get()),
          "a copy to the GPU");
    pages_[page].arrived.record(*stream_);
    device += piece;
    host += piece;
    left -= piece;
  }
}

void Staging::down(void* to, const void* from, std::int64_t bytes, std::uint64_t place) {
  auto* host = static_cast<std::byte*>(to);
  const auto* device = static_cast<const std::byte*>(from);
  for (auto left = std::size_t(bytes); left > 0;) {
    const std::size_t piece = std::min(left, page_bytes), page = next();
    check(cudaMemcpyAsync(memory_of(page), device, piece, cudaMemcpyDeviceToHost, stream_->get()),
          "a copy from the GPU");
    Page& it = pages_[page];
    it.arrived.record(*stream_);
    it.to = host;
    it.bytes = piece;
    it.place = place;
    device += piece;
    host += piece;
    left -= piece;
  }
}

void Staging::hand_over(std::uint64_t place) {
  // From the one that was used longest ago, so that each wait is for what comes next.
  for (std::size_t i = 1; i <= count; ++i) {
    const std::size_t page = (turn_ + i) % count;
    if (pages_[page].to && pages_[page].place <= place) settle(page);
  }
}

}  // namespace weft::cuda
